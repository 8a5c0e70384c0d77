package twoefay.phone;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.security.GeneralSecurityException;
import java.security.cert.CertPath;
import java.security.cert.CertPathValidator;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.PKIXParameters;
import java.security.cert.TrustAnchor;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Date;
import java.util.List;
import java.util.Locale;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import javax.net.ssl.X509TrustManager;

/**
 * Trusts a relay by the pins of its authority.
 *
 * <p>The chain must contain an authority whose key has a pinned SHA-256. The relay's own
 * certificate must lead to it, be for servers, for the relay's host, and valid now. The roots of
 * the system do not matter.
 *
 * <p>It checks the host name itself. Android and Java check it only if they are asked to, and on
 * Android not at all with a trust manager of the app.
 */
public final class Pinning implements X509TrustManager {
    private static final int MOST_AUTHORITIES = 3;
    private static final int MOST_SENT = 8;
    private static final String SERVER_AUTHENTICATION = "1.3.6.1.5.5.7.3.1";

    private final String host;
    private final Supplier<List<String>> pins;
    private final LongSupplier now;

    /**
     * @param pins the pins at the time of the handshake, in base64url
     * @param now the time of the relay's clock in milliseconds; null to leave the dates unchecked,
     *     which only the request for the relay's time may do
     */
    Pinning(String host, Supplier<List<String>> pins, LongSupplier now) {
        this.host = host;
        this.pins = pins;
        this.now = now;
    }

    /** Returns the pin of a certificate: the SHA-256 of its SubjectPublicKeyInfo. */
    static String pin(X509Certificate certificate) {
        return Base64Url.encode(P256.sha256(certificate.getPublicKey().getEncoded()));
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String authType) throws CertificateException {
        if (chain == null || chain.length == 0) {
            throw new CertificateException("the relay has no certificate");
        }
        List<X509Certificate> path = new ArrayList<>(Collections.singletonList(chain[0]));
        if (chain.length > MOST_SENT || !isLed(path, chain)) {
            throw new CertificateException("the relay's certificate does not lead to the pinned authority");
        }
        check(path);
        X509Certificate leaf = chain[0];
        List<String> usages = leaf.getExtendedKeyUsage();
        if (usages == null || !usages.contains(SERVER_AUTHENTICATION)) {
            throw new CertificateException("the relay's certificate is not for servers");
        }
        if (!isFor(leaf, host)) {
            throw new CertificateException("the relay's certificate is for another host");
        }
    }

    /**
     * Adds the certificates from the last one of the path to the pinned authority. Returns false
     * without any.
     */
    private boolean isLed(List<X509Certificate> path, X509Certificate[] chain) {
        X509Certificate last = path.get(path.size() - 1);
        if (path.size() > 1 && pins.get().contains(pin(last))) {
            return true;
        }
        for (X509Certificate each : chain) {
            boolean isNew = path.size() <= MOST_AUTHORITIES && !path.contains(each);
            if (isNew && each.getBasicConstraints() >= 0 && hasSigned(each, last)) {
                path.add(each);
                if (isLed(path, chain)) {
                    return true;
                }
                path.remove(each);
            }
        }
        return false;
    }

    private static boolean hasSigned(X509Certificate issuer, X509Certificate subject) {
        try {
            subject.verify(issuer.getPublicKey());
            return issuer.getSubjectX500Principal().equals(subject.getIssuerX500Principal());
        } catch (GeneralSecurityException otherKey) {
            return false;
        }
    }

    private void check(List<X509Certificate> path) throws CertificateException {
        X509Certificate anchor = path.get(path.size() - 1);
        boolean[] usage = anchor.getKeyUsage();
        // PKIX takes an anchor as it is, so its own limits are checked here.
        if (usage != null && !usage[5] || anchor.getBasicConstraints() < path.size() - 2) {
            throw new CertificateException("the pinned key may not sign these certificates");
        }
        try {
            PKIXParameters rules = new PKIXParameters(Collections.singleton(new TrustAnchor(anchor, null)));
            rules.setRevocationEnabled(false);
            if (now != null) {
                // PKIX checks the dates of all certificates but the anchor.
                rules.setDate(new Date(now.getAsLong()));
                anchor.checkValidity(rules.getDate());
            } else {
                // PKIX always needs a time: one at which a right path was valid.
                rules.setDate(path.stream().map(X509Certificate::getNotBefore).max(Date::compareTo).get());
            }
            CertPath checked = CertificateFactory.getInstance("X.509")
                .generateCertPath(path.subList(0, path.size() - 1));
            CertPathValidator.getInstance("PKIX").validate(checked, rules);
        } catch (CertificateException refused) {
            throw refused;
        } catch (GeneralSecurityException refused) {
            throw new CertificateException("the relay's certificate is not valid: " + refused.getMessage(), refused);
        }
    }

    /**
     * Whether a certificate has the host among its alternative names. The common name does not
     * count.
     */
    static boolean isFor(X509Certificate certificate, String host) throws CertificateException {
        boolean isAddress = host.matches("[0-9.]+") || host.contains(":");
        if (certificate.getSubjectAlternativeNames() == null) {
            return false;
        }
        for (List<?> name : certificate.getSubjectAlternativeNames()) {
            boolean isSame = isAddress
                ? name.get(0).equals(7) && isSameAddress((String) name.get(1), host)
                : name.get(0).equals(2) && isSameName((String) name.get(1), host);
            if (isSame) {
                return true;
            }
        }
        return false;
    }

    private static boolean isSameAddress(String one, String other) {
        try {
            // Both are addresses, so nothing is looked up.
            return InetAddress.getByName(one).equals(InetAddress.getByName(other));
        } catch (UnknownHostException malformed) {
            return false;
        }
    }

    /** Compares names. A star stands for the whole first label, as RFC 9525 has it. */
    private static boolean isSameName(String pattern, String host) {
        String name = host.toLowerCase(Locale.ROOT);
        String wanted = pattern.toLowerCase(Locale.ROOT);
        int dot = name.indexOf('.');
        return wanted.startsWith("*.")
            ? dot > 0 && name.substring(dot).equals(wanted.substring(1)) && name.indexOf('.', dot + 1) > 0
            : wanted.equals(name);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String authType) throws CertificateException {
        throw new CertificateException("a phone is no server");
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
        return new X509Certificate[0];
    }
}
