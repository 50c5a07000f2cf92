import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;

/** Apache's own SQL92 filters: args are name=value, each line of stdin a filter; says true, false, or what was thrown. */
public class Filters {
    public static void main(String[] args) throws Exception {
        Map<String, String> properties = new HashMap<>();
        for (String arg : args) {
            properties.put(arg.substring(0, arg.indexOf('=')), arg.substring(arg.indexOf('=') + 1));
        }
        EvaluationContext context = new EvaluationContext() {
            @Override
            public Object get(String name) {
                return properties.get(name);
            }

            @Override
            public Map<String, Object> keyValues() {
                return new HashMap<>(properties);
            }
        };
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(said(line, context));
        }
        System.out.println("END");
    }

    static String said(String line, EvaluationContext context) {
        Expression filter;
        try {
            filter = FilterFactory.INSTANCE.get("SQL92").compile(line);
        } catch (Throwable e) {
            return "refused";
        }
        try {
            return String.valueOf(Boolean.TRUE.equals(filter.evaluate(context))); // as a broker: what throws is no match
        } catch (Throwable e) {
            return "false";
        }
    }
}
