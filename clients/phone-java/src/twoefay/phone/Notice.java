package twoefay.phone;

import java.time.Instant;

/** A short text from the website or the operator. Show it as plain text, apart from challenges. */
public final class Notice {
    public final String id;
    /** {@code website} or {@code operator}. */
    public final String from;
    public final String title;
    /** Lines that {@code \n} separates; null in a list, whose entries are not signed. */
    public final String text;
    public final Instant createdAt;

    /** Reads an entry of a list, or the claims of a statement. */
    Notice(Json object, boolean isSigned) throws Failure {
        id = Answers.id(object, "message");
        from = object.text("from");
        title = object.text("title");
        text = isSigned ? object.text("text") : null;
        boolean isFrom = "website".equals(from) || "operator".equals(from);
        if (!isFrom || title == null || !Text.isShowable(title)
            || isSigned && (text == null || !Text.isShowable(text.replace("\n", "")))) {
            throw Failure.unbelievable("a notice cannot be shown");
        }
        try {
            createdAt = Context.time(object, "created_at");
        } catch (Json.Malformed noTime) {
            throw Failure.unbelievable(noTime.getMessage());
        }
    }
}
