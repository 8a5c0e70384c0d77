package twoefay.phone;

import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A website of a real relay. It speaks HTTP/2, by the client of the Java library. */
final class Website {
    private static final char[] NONE = new char[0];

    final RealRelay relay;
    final String name;
    private HttpClient client;

    Website(RealRelay relay, String name) throws Exception {
        this.relay = relay;
        this.name = name;
        reconnect();
    }

    /** Trusts the authority that the relay has now. */
    void reconnect() throws Exception {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        KeyStore own = KeyStore.getInstance("PKCS12");
        own.load(null, null);
        byte[] pem = Files.readAllBytes(relay.directory.resolve(name + ".pem"));
        Certificate[] chain = factory.generateCertificates(new ByteArrayInputStream(pem)).toArray(new Certificate[0]);
        own.setKeyEntry("own", Certificates.privateKey(Files.readString(relay.directory.resolve(name + ".key"))), NONE, chain);
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(own, NONE);
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        byte[] roots = Files.readAllBytes(relay.directory.resolve("relay/ca.pem"));
        int count = 0;
        for (Certificate root : factory.generateCertificates(new ByteArrayInputStream(roots))) {
            trusted.setCertificateEntry("root" + ++count, root);
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        client = HttpClient.newBuilder().sslContext(context).build();
    }

    Json call(int status, String method, String path, String body, String... fields) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(relay.origin + path)).method(method,
            body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body));
        if (body != null) {
            request.header("content-type", "application/json");
        }
        if (fields.length > 0) {
            request.headers(fields);
        }
        HttpResponse<String> answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        Check.that(answer.statusCode() == status, method + " " + path + ": " + answer.statusCode() + " " + answer.body());
        return answer.body().isEmpty() ? new Json() : Json.read(answer.body());
    }

    /** Registers a user, and returns the activation with a secret of the website. */
    Activation register(String username, String k) throws Exception {
        Json answer = call(201, "POST", "/register",
            new Json().put("username", username).put("email", username + "@example.com").toString());
        return new Activation(answer.object("activation").text("uri") + (k == null ? "" : "&k=" + k));
    }

    /**
     * Returns the activation for another phone of a user who has none, or whose website approves
     * it.
     */
    Activation further(String username) throws Exception {
        return new Activation(call(201, "POST", "/user/" + username + "/activation", "{}").text("uri"));
    }

    /** The same, after a phone of the user has approved it. */
    Activation further(String username, Person approver) throws Exception {
        Json asked = call(403, "POST", "/user/" + username + "/activation", "{}");
        Check.equal("approval_required", asked.text("code"));
        Check.that(approver.approve(asked), "not approved");
        Check.equal("success", outcome(asked).text("login"));
        String approval = new Json().put("approval", asked.text("challenge")).toString();
        return new Activation(call(201, "POST", "/user/" + username + "/activation", approval).text("uri"));
    }

    Json login(String username) throws Exception {
        return call(201, "POST", "/login", "{\"username\":\"" + username + "\",\"service\":\"members\",\"ip\":\"192.0.2.7\","
            + "\"action\":\"pay\",\"details\":[{\"label\":\"amount\",\"value\":\"12.00 EUR\"}]}");
    }

    /**
     * Returns {@code login} and {@code reason} of a login that has ended, checked for a signature.
     */
    String result(Json login) throws Exception {
        Json answer = outcome(login);
        return answer.text("login") + " " + answer.text("reason") + " " + answer.text("proof");
    }

    Json outcome(Json login) throws Exception {
        return call(200, "POST", "/auth", new Json().put("challenge", login.text("challenge")).toString(), "prefer", "wait=60");
    }

    Json device(String username, int index) throws Exception {
        List<Object> devices = call(200, "GET", "/user/" + username, null).list("devices");
        return (Json) devices.get(index);
    }
}
