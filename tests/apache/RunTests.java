import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs the JUnit classes named on stdin, one after the other; what came of them are tab-separated lines. */
public class RunTests {
    public static void main(String[] args) throws Exception {
        JUnitCore core = new JUnitCore();
        core.addListener(new RunListener() {
            @Override
            public void testStarted(Description test) {
                say("TEST", test.getClassName(), String.valueOf(test.getMethodName()));
            }

            @Override
            public void testFailure(Failure failure) {
                String method = String.valueOf(failure.getDescription().getMethodName());
                String why = String.valueOf(failure.getException()).replaceAll("\\s+", " ");
                say("FAILED", failure.getDescription().getClassName(), method, why);
            }
        });
        say("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String name = in.readLine(); name != null; name = in.readLine()) {
            Result result = core.run(Class.forName(name));
            say("DONE", name, String.valueOf(result.getRunCount()), String.valueOf(result.getFailureCount()));
        }
        System.exit(0);
    }

    static synchronized void say(String... fields) {
        System.out.println(String.join("\t", fields));
        System.out.flush();
    }
}
