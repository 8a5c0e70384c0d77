package twoefay.phone;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The programs twoefayd and twoefay, in a directory of their own. */
final class RealRelay {
    private static final Path PROGRAMS = Path.of(System.getProperty("twoefay.programs"));
    private static final List<RealRelay> ALL = new ArrayList<>();
    private static RealRelay shared;

    final Path directory;
    final String origin;
    private final BlockingQueue<String> log = new LinkedBlockingQueue<>();
    private final StringBuilder read = new StringBuilder();
    private Process daemon;

    RealRelay() throws Exception {
        directory = Files.createTempDirectory(Path.of(System.getProperty("twoefay.work")), "relay");
        int port;
        // The daemon has no port 0: its origin must be known before.
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = probe.getLocalPort();
        }
        origin = "https://localhost:" + port;
        run("init", "relay", "--listen", "127.0.0.1:" + port);
    }

    /** One relay for most tests: each has a website or users of its own. */
    static synchronized RealRelay shared() throws Exception {
        if (shared == null) {
            shared = new RealRelay();
            shared.start();
        }
        return shared;
    }

    static void stopAll() throws Exception {
        for (RealRelay relay : ALL) {
            relay.daemon.destroy();
            relay.daemon.waitFor(30, TimeUnit.SECONDS);
        }
    }

    String run(String... words) throws Exception {
        List<String> command = new ArrayList<>(List.of(PROGRAMS.resolve("twoefay").toString()));
        command.addAll(List.of(words));
        Process process = new ProcessBuilder(command).directory(directory.toFile()).redirectErrorStream(true).start();
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes());
        Check.that(process.waitFor() == 0, String.join(" ", command) + ": " + output);
        return output;
    }

    /** Runs a command of the operator. */
    String operate(String... words) throws Exception {
        List<String> all = new ArrayList<>(List.of("--config", "relay/twoefay.yaml"));
        all.addAll(List.of(words));
        return run(all.toArray(new String[0]));
    }

    /** Changes a line of the settings. */
    void set(String pattern, String replacement) throws IOException {
        Path settings = directory.resolve("relay/twoefay.yaml");
        String text = Files.readString(settings);
        String changed = text.replaceFirst(pattern, replacement);
        Check.that(!changed.equals(text), "the settings have no " + pattern);
        Files.writeString(settings, changed);
    }

    void start() throws Exception {
        daemon = new ProcessBuilder(PROGRAMS.resolve("twoefayd").toString(), "--config", "relay/twoefay.yaml")
            .directory(directory.toFile()).redirectErrorStream(true).start();
        ALL.add(this);
        // Also if the tests are interrupted.
        Runtime.getRuntime().addShutdownHook(new Thread(daemon::destroy));
        Thread reader = new Thread(() -> {
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(daemon.getInputStream()))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    log.add(line);
                }
            } catch (IOException ended) {
                log.add("the log has ended: " + ended);
            }
            log.add("END");
        });
        reader.setDaemon(true);
        reader.start();
        logged("event=daemon.started");
    }

    /** Waits for a line of the log. */
    void logged(String part) throws InterruptedException {
        for (String line = log.take(); ; line = log.take()) {
            read.append(line).append('\n');
            if (line.contains(part)) {
                return;
            }
            Check.that(!line.equals("END"), "the relay has ended: " + read);
        }
    }

    /** Reads files and settings again. */
    void reload() throws Exception {
        Process signal = new ProcessBuilder("kill", "-HUP", String.valueOf(daemon.pid())).start();
        Check.equal(0, signal.waitFor());
        logged("event=daemon.reloaded");
    }

    Website website(String name, String... policies) throws Exception {
        List<String> words = new ArrayList<>(List.of("website", "add", name));
        words.addAll(List.of(policies));
        operate(words.toArray(new String[0]));
        return new Website(this, name);
    }
}
