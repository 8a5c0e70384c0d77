package twoefay.phone;

import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/** Certificates that openssl makes: another program than the one that is tested. */
final class Certificates {
    /** A key with its certificate. */
    static final class Holder {
        final X509Certificate certificate;
        final PrivateKey key;
        private final String name;

        private Holder(String name) throws Exception {
            this.name = name;
            certificate = (X509Certificate) CertificateFactory.getInstance("X.509")
                .generateCertificate(new ByteArrayInputStream(Files.readAllBytes(file(name + ".pem"))));
            key = privateKey(Files.readString(file(name + ".key")));
        }
    }

    private static final Path DIRECTORY = Path.of(System.getProperty("twoefay.work"));
    private static int count;

    private Certificates() {}

    private static Path file(String name) {
        return DIRECTORY.resolve(name);
    }

    static PrivateKey privateKey(String pem) throws Exception {
        byte[] der = Base64.getMimeDecoder().decode(pem.replaceAll("-----[^-]*-----", ""));
        return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(der));
    }

    static Holder authority() throws Exception {
        return make(null, "P-256", 3650, "basicConstraints=critical,CA:true", "keyUsage=critical,keyCertSign");
    }

    static Holder server(Holder issuer, String alternativeName) throws Exception {
        return make(issuer, "P-256", 90, "extendedKeyUsage=serverAuth", "subjectAltName=" + alternativeName);
    }

    /** Makes a certificate that begins now; with a negative number of days it has ended. */
    static Holder make(Holder issuer, String curve, int days, String... extensions) throws Exception {
        String name = "c" + ++count;
        run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:" + curve, "-out", name + ".key");
        run("openssl", "req", "-new", "-key", name + ".key", "-subj", "/CN=" + name, "-out", name + ".csr");
        Files.write(file(name + ".ext"), List.of(extensions));
        List<String> words = new ArrayList<>(List.of("openssl", "x509", "-req", "-in", name + ".csr", "-extfile", name + ".ext",
            "-days", String.valueOf(days), "-out", name + ".pem", "-set_serial", String.valueOf(count)));
        words.addAll(issuer == null
            ? List.of("-signkey", name + ".key") : List.of("-CA", issuer.name + ".pem", "-CAkey", issuer.name + ".key"));
        run(words.toArray(new String[0]));
        return new Holder(name);
    }

    /** Makes another certificate for the key and the name of an authority, by another issuer. */
    static Holder cross(Holder subject, Holder issuer) throws Exception {
        String name = "c" + ++count;
        Files.copy(file(subject.name + ".key"), file(name + ".key"));
        Files.write(file(name + ".ext"), List.of("basicConstraints=critical,CA:true"));
        run("openssl", "x509", "-req", "-in", subject.name + ".csr", "-extfile", name + ".ext", "-days", "90",
            "-out", name + ".pem", "-set_serial", String.valueOf(count), "-CA", issuer.name + ".pem", "-CAkey", issuer.name + ".key");
        return new Holder(name);
    }

    private static void run(String... words) throws Exception {
        Process process = new ProcessBuilder(words).directory(DIRECTORY.toFile()).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        Check.that(process.waitFor() == 0, output);
    }
}
