import CLinux
import Glibc

/// The file of the command that issues certificates, and who could replace it.
public enum CommandFile {
    /// The reason why the command must not be run; nil if there is none.
    ///
    /// Whoever can change the file, or put another one in its place, decides which phones get
    /// certificates. So its owner is root or the user of this process, and nobody else may write.
    public static func fault(_ path: String) -> String? {
        var state = stat()
        guard stat(path, &state) == 0 else { return "\(path): \(String(cString: strerror(errno)))" }
        guard state.st_mode & S_IFMT == S_IFREG else { return "\(path) is not a file" }
        if let fault = writable(path, state) { return fault }
        guard access(path, X_OK) == 0 else {
            return "\(path) is not executable for the user \(getuid()): chmod 755 \(path)"
        }
        return nil
    }

    /// The directories through which another user could replace the file, each as a sentence.
    public static func warnings(_ path: String) -> [String] {
        var warnings: [String] = []
        guard let real = realpath(path, nil) else { return [] }
        defer { free(real) }
        // The path may have links, and each of them can be replaced, too.
        for var directory in [path, String(cString: real)] {
            while let slash = directory.lastIndex(of: "/"), directory != "/" {
                directory = slash == directory.startIndex ? "/" : String(directory[..<slash])
                let warning = "\(directory) can be changed by other users, who could replace the command \(path)"
                var state = stat()
                guard stat(directory, &state) == 0, writable(directory, state) != nil, !warnings.contains(warning)
                else { continue }
                warnings.append(warning)
            }
        }
        return warnings
    }

    private static func writable(_ path: String, _ state: stat) -> String? {
        guard [0, geteuid()].contains(state.st_uid) else {
            return "\(path) belongs to the user \(state.st_uid), who could change it: chown root \(path)"
        }
        // In a directory with this bit, nobody else can replace a file.
        let isProtected = state.st_mode & S_IFMT == S_IFDIR && state.st_mode & S_ISVTX != 0
        guard state.st_mode & (S_IWGRP | S_IWOTH) == 0 || isProtected else {
            return "\(path) can be changed by other users: chmod go-w \(path)"
        }
        return nil
    }
}
