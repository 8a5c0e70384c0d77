package twoefay.phone;

/** Rules for texts of others that a screen shows. */
final class Text {
    /**
     * The first and last code points of the ranges that no shown text may have. Control characters
     * could overwrite the screen, marks of direction could reverse an amount, and invisible
     * characters could make two different texts look equal.
     */
    private static final int[] HIDDEN = {
        0x0000, 0x001F, 0x007F, 0x009F, 0x00AD, 0x00AD, 0x034F, 0x034F, 0x061C, 0x061C,
        0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180F, 0x200B, 0x200F, 0x2028, 0x202E,
        0x2060, 0x206F, 0x3164, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFEFF, 0xFFA0, 0xFFA0,
        0xFFF0, 0xFFFB, 0x1BCA0, 0x1BCA3, 0x1D173, 0x1D17A, 0xE0000, 0xE0FFF,
    };

    private Text() {}

    static boolean isShowable(String text) {
        return text.codePoints().noneMatch(Text::isHidden);
    }

    private static boolean isHidden(int point) {
        for (int index = 0; index < HIDDEN.length; index += 2) {
            if (point >= HIDDEN[index] && point <= HIDDEN[index + 1]) {
                return true;
            }
        }
        return false;
    }

    /** Returns a text of the relay for a message of this program, without hidden characters. */
    static String visible(String text, int limit) {
        StringBuilder out = new StringBuilder();
        text.codePoints().limit(limit).forEach(point -> out.appendCodePoint(isHidden(point) ? 0xFFFD : point));
        return out.toString();
    }

    /** Whether the text can be an id of the relay: it is safe in a path and on a screen. */
    static boolean isId(String text) {
        return text != null && text.matches("[A-Za-z0-9_-]{1,128}");
    }
}
