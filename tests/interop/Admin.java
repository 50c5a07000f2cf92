import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** mqadmin, many times in one JVM: a line of tab-separated arguments in, what mqadmin prints out, then -- END --. */
public class Admin {
    public static void main(String[] args) throws Exception {
        System.setErr(System.out);
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            forgetCommands();
            MQAdminStartup.main0(line.isEmpty() ? new String[0] : line.split("\t"), null);
            System.out.println();
            System.out.println("-- END --");
            System.out.flush();
        }
        System.exit(0);
    }

    /** So that main0 makes them anew, as in a JVM of its own: some keep the client that they have shut down, and say ever
     * after that they cannot connect. */
    private static void forgetCommands() throws Exception {
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (field.getType() == List.class) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }
}
