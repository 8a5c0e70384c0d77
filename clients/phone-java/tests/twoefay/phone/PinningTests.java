package twoefay.phone;

import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.util.List;
import java.util.function.LongSupplier;
import twoefay.phone.Tests.Test;

/** Chains that lead to the pinned authority, and chains that do not. */
final class PinningTests {
    private static final LongSupplier NOW = System::currentTimeMillis;

    private PinningTests() {}

    private static void check(String host, Certificates.Holder pinned, LongSupplier now, Certificates.Holder... chain)
        throws CertificateException {
        List<String> pins = List.of(Pinning.pin(pinned.certificate));
        X509Certificate[] sent = new X509Certificate[chain.length];
        for (int index = 0; index < chain.length; index++) {
            sent[index] = chain[index].certificate;
        }
        new Pinning(host, () -> pins, now).checkServerTrusted(sent, "ECDHE_ECDSA");
    }

    private static void refuses(String host, Certificates.Holder pinned, LongSupplier now, Certificates.Holder... chain) {
        Check.fails(CertificateException.class, () -> check(host, pinned, now, chain));
    }

    @Test
    static void chainToThePinnedAuthorityIsTrusted() throws Exception {
        Certificates.Holder root = Certificates.authority();
        Certificates.Holder middle = Certificates.make(root, "P-384", 100, "basicConstraints=critical,CA:true");
        Certificates.Holder direct = Certificates.server(root, "DNS:login.example.com,DNS:*.shop.example,IP:192.0.2.7,IP:::1");
        Certificates.Holder below = Certificates.server(middle, "DNS:login.example.com");
        check("login.example.com", root, NOW, direct, root);
        check("LOGIN.example.com", root, NOW, direct, root);
        check("a.shop.example", root, NOW, direct, root);
        check("192.0.2.7", root, NOW, direct, root);
        check("0:0:0:0:0:0:0:1", root, NOW, direct, root);
        check("login.example.com", root, NOW, below, root, middle);
        // Another certificate of the middle's key, by an authority that is not there, leads
        // nowhere.
        Certificates.Holder cross = Certificates.cross(middle, Certificates.authority());
        check("login.example.com", root, NOW, below, cross, root, middle);
        check("login.example.com", root, NOW, below, middle, cross, root);
        // The pinned authority need not be a root.
        check("login.example.com", middle, NOW, below, middle);
        for (String host : List.of("example.com", "login.example.com.", "shop.example", "b.a.shop.example", "192.0.2.8", "::2")) {
            refuses(host, root, NOW, direct, root);
        }
    }

    @Test
    static void otherChainsAreRefused() throws Exception {
        Certificates.Holder root = Certificates.authority();
        Certificates.Holder other = Certificates.authority();
        String name = "DNS:login.example.com";
        Certificates.Holder server = Certificates.server(root, name);
        refuses("login.example.com", root, NOW);
        refuses("login.example.com", root, NOW, server);
        refuses("login.example.com", other, NOW, server, root);
        // The chain holds the authority, which has not signed the server's certificate.
        refuses("login.example.com", root, NOW, Certificates.server(other, name), other, root);
        // A server's certificate is no authority, even if it was issued by one.
        refuses("login.example.com", root, NOW, Certificates.server(server, name), server, root);
        refuses("login.example.com", server, NOW, Certificates.server(server, name), server);
        // A pinned key in the server's own place is no authority either.
        refuses("login.example.com", server, NOW, server, root);
        refuses("login.example.com", root, NOW,
            Certificates.make(root, "P-256", 9, "extendedKeyUsage=clientAuth", "subjectAltName=" + name), root);
        refuses("login.example.com", root, NOW, Certificates.make(root, "P-256", 9, "subjectAltName=" + name), root);
        Certificates.Holder unnamed = Certificates.make(root, "P-256", 9, "extendedKeyUsage=serverAuth");
        refuses("login.example.com", root, NOW, unnamed, root);
        refuses(unnamed.certificate.getSubjectX500Principal().getName().substring(3), root, NOW, unnamed, root);
        Certificates.Holder mute = Certificates.make(null, "P-256", 9, "basicConstraints=critical,CA:true",
            "keyUsage=critical,digitalSignature");
        refuses("login.example.com", mute, NOW, Certificates.server(mute, name), mute);
        Certificates.Holder limited = Certificates.make(null, "P-256", 9, "basicConstraints=critical,CA:true,pathlen:0");
        Certificates.Holder below = Certificates.make(limited, "P-256", 9, "basicConstraints=critical,CA:true");
        refuses("login.example.com", limited, NOW, Certificates.server(below, name), below, limited);
        refuses("login.example.com", root, NOW,
            Certificates.make(root, "P-256", 9, "extendedKeyUsage=serverAuth", "subjectAltName=" + name,
                "1.2.3.4=critical,ASN1:NULL"), root);
    }

    @Test
    static void datesAreCheckedByTheGivenClock() throws Exception {
        Certificates.Holder root = Certificates.authority();
        Certificates.Holder server = Certificates.server(root, "DNS:login.example.com");
        long day = 86_400_000;
        check("login.example.com", root, () -> NOW.getAsLong() + 89 * day, server, root);
        refuses("login.example.com", root, () -> NOW.getAsLong() + 91 * day, server, root);
        refuses("login.example.com", root, () -> NOW.getAsLong() - day, server, root);
        // The request for the relay's time checks all but the dates.
        check("login.example.com", root, null, server, root);
        refuses("other.example.com", root, null, server, root);
        refuses("login.example.com", Certificates.authority(), null, server, root);
        // An authority that has ended, with a server's certificate that has not.
        Certificates.Holder brief = Certificates.make(null, "P-256", 10, "basicConstraints=critical,CA:true");
        Certificates.Holder longer = Certificates.server(brief, "DNS:login.example.com");
        refuses("login.example.com", brief, () -> NOW.getAsLong() + 11 * day, longer, brief);
    }

    @Test
    static void eitherOfTwoPinsCounts() throws Exception {
        Certificates.Holder first = Certificates.authority();
        Certificates.Holder second = Certificates.authority();
        List<String> pins = List.of(Pinning.pin(first.certificate), Pinning.pin(second.certificate));
        for (Certificates.Holder root : List.of(first, second)) {
            Certificates.Holder server = Certificates.server(root, "DNS:login.example.com");
            new Pinning("login.example.com", () -> pins, NOW).checkServerTrusted(
                new X509Certificate[] {server.certificate, first.certificate, second.certificate}, "ECDHE_ECDSA");
        }
    }
}
