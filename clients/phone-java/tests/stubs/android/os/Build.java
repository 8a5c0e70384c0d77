package android.os;

/** A stub, against which the sketch in README.md is compiled. */
public final class Build {
    public static final class VERSION {
        public static final int SDK_INT = 31;
    }
}
