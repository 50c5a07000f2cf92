import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** mqadmin, many times in one JVM: a line of tab-separated arguments in, what mqadmin prints out, then END. */
public class Admin {
    public static void main(String[] args) throws Exception {
        System.setErr(System.out);
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            MQAdminStartup.main0(line.split("\t"), null);
            System.out.println();
            System.out.println("END");
            System.out.flush();
        }
        System.exit(0);
    }
}
