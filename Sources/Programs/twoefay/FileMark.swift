import CLinux
import Glibc

/// The attributes by which a change of a file is detected, whether it is written or replaced.
struct FileMark: Equatable {
    private var inode: UInt = 0
    private var size = 0
    private var seconds = 0
    private var nanoseconds = 0

    init(_ path: String) {
        var state = stat()
        guard stat(path, &state) == 0 else { return }
        inode = UInt(state.st_ino)
        size = Int(state.st_size)
        seconds = state.st_mtim.tv_sec
        nanoseconds = state.st_mtim.tv_nsec
    }
}
