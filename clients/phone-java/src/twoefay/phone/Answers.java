package twoefay.phone;

import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.util.List;

/** Reads what the relay answers, and believes no more of it than the protocol says. */
final class Answers {
    private Answers() {}

    /** Returns the body of an answer, or throws the refusal. */
    static Json accepted(Transport.Answer answer) throws Failure {
        boolean isSuccess = answer.status >= 200 && answer.status < 300;
        try {
            Json body = answer.body.length == 0 ? new Json() : Json.read(answer.body);
            if (isSuccess) {
                return body;
            }
            throw new Failure(answer, body);
        } catch (Json.Malformed malformed) {
            if (isSuccess) {
                throw Failure.unbelievable(malformed.getMessage());
            }
            throw new Failure(answer, new Json());
        }
    }

    static String id(Json body, String name) throws Failure {
        if (!Text.isId(body.text(name))) {
            throw Failure.unbelievable("it has no " + name);
        }
        return body.text(name);
    }

    static List<Object> entries(Json answer, String name) throws Failure {
        if (answer.list(name) == null) {
            throw Failure.unbelievable("it has no " + name);
        }
        return answer.list(name);
    }

    // Statements that the relay signs

    /** Whether the relay's certificate in this connection has signed a statement. */
    static boolean isSigned(String text, X509Certificate certificate) {
        try {
            return new Jws(text).isSignedBy(certificate);
        } catch (Json.Malformed | GeneralSecurityException unsigned) {
            return false;
        }
    }

    /** Returns the claims of a statement by the certificate of the connection. */
    static Json claims(String text, X509Certificate certificate, String type, String audience)
        throws Failure {
        try {
            Jws statement = new Jws(text);
            if (!isSigned(text, certificate) || !statement.hasType(type)
                || !Long.valueOf(1).equals(statement.claims.integer("v"))
                || !audience.equals(statement.claims.text("aud"))) {
                throw Failure.unbelievable("a statement is not signed for this phone");
            }
            return statement.claims;
        } catch (Json.Malformed malformed) {
            throw Failure.unbelievable(malformed.getMessage());
        }
    }
}
