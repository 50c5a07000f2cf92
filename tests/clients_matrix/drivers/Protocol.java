import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** What each Java driver says and does (docs/conform-protocol.md): JSON lines, a send each 200 ms, an end at SIGTERM or at
 * the end of stdin. */
final class Protocol {
    private static final long EVERY_MS = 200, CLOSES_MS = 1500;
    private static final CountDownLatch END = new CountDownLatch(1);
    static final String ROLE = System.getenv().getOrDefault("NEMESRV_ROLE", "producer");
    static final String TOPIC = System.getenv("NEMESRV_TOPIC"), GROUP = System.getenv("NEMESRV_GROUP");
    static final boolean SENDS = !ROLE.equals("consumer"), RECEIVES = !ROLE.equals("producer");

    interface Work {
        void run() throws Exception;
    }

    /** Sends the message of that id, and returns what is known of it besides, as more members of the line. */
    interface Send {
        String send(String id) throws Exception;
    }

    static void main(Work work) {
        try {
            work.run();
            System.exit(0);
        } catch (Throwable e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1); // the client's own threads would keep it
        }
    }

    /** `close` runs in the shutdown hook, on SIGTERM too; what hangs is left behind. */
    static void closesBy(Runnable close) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            END.countDown();
            Thread closing = new Thread(close);
            closing.start();
            try {
                closing.join(CLOSES_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0);
        }));
    }

    /** It has started; from now on it sends, where it is to send, until its end. */
    static void started(Send send) throws InterruptedException {
        line("{\"f\":\"started\"}");
        Thread input = new Thread(Protocol::untilInputEnds);
        input.setDaemon(true);
        input.start();
        long pid = ProcessHandle.current().pid();
        for (long n = 0; !END.await(n == 0 ? 0 : EVERY_MS, TimeUnit.MILLISECONDS); n++) {
            if (SENDS) {
                send(send, pid + "-" + n);
            }
        }
    }

    private static void send(Send send, String id) {
        say("send", id, "");
        try {
            say("sent", id, ",\"type\":\"ok\"" + send.send(id));
        } catch (Exception e) {
            say("sent", id, ",\"type\":\"fail\",\"error\":" + quoted(String.valueOf(e)));
        }
    }

    private static void untilInputEnds() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (java.io.IOException e) {
            System.err.println(e);
        }
        System.exit(0);
    }

    static String at(String broker, int queue) {
        return ",\"broker\":" + quoted(broker) + ",\"queue\":" + queue;
    }

    static void say(String what, String id, String more) {
        line("{\"f\":\"" + what + "\",\"id\":" + quoted(id) + more + "}");
    }

    private static synchronized void line(String json) {
        System.out.println(json);
        System.out.flush();
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            out.append(c == '"' || c == '\\' ? "\\" + c : c < ' ' ? " " : String.valueOf(c));
        }
        return out.append('"').toString();
    }
}
