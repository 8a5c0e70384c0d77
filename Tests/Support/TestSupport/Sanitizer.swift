import Glibc

/// The check for a sanitizer in this run. Programs with a sanitizer are several times slower and
/// larger, so limits of time and memory do not apply. All other checks still do.
public enum Sanitizer {
    public static let isOn = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

    /// The factor by which timeouts are longer.
    public static var timeout: Int { isOn ? 10 : 1 }
}
