import Glibc
import TestSupport
import Testing

@testable import Hardening

/// The system calls that the filter forbids and those that it allows.
@Suite(.enabled(if: !Sanitizer.isOn)) struct FilterTests {
    @Test func execveEndsTheProcess() async throws {
        let directory = try TemporaryDirectory()
        await #expect(processExitsWith: .signal(SIGSYS)) { [path = directory.path as String] in
            _ = RestrictedProcess(changing: path)
            execv("/bin/true", [strdup("true"), nil])
        }
    }

    @Test func mountEndsTheProcess() async throws {
        let directory = try TemporaryDirectory()
        await #expect(processExitsWith: .signal(SIGSYS)) { [path = directory.path as String] in
            _ = RestrictedProcess(changing: path)
            umount("/nowhere")
        }
    }

    @Test func forkSignalsAndRawSocketsAreRefused() async throws {
        let directory = try TemporaryDirectory()
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            var process = RestrictedProcess(changing: path)
            process.refuses("a child") {
                var pid: pid_t = 0
                errno = posix_spawn(&pid, "/bin/true", nil, nil, [nil], nil)
                return errno == 0
            }
            process.refuses("a signal to another process") { kill(getppid(), 0) == 0 }
            process.refuses("a raw socket") { socket(AF_INET, Int32(SOCK_RAW.rawValue), 0) >= 0 }
            process.refuses("memory that is written and executed") {
                mmap(nil, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED
            }
            process.refuses("another filter's end") { setuid(12345) == 0 }
            process.refuses("a mode that no socket has") { chmod(path, 0o4755) == 0 }
            process.end()
        }
    }

    @Test func threadsSocketsAndNameLookupsAreAllowed() async throws {
        let directory = try TemporaryDirectory()
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            var process = RestrictedProcess(changing: path)
            var thread = pthread_t()
            process.check("a thread begins", pthread_create(&thread, nil, { _ in nil }, nil) == 0)
            process.check("it ends", pthread_join(thread, nil) == 0)
            for family in [AF_INET, AF_INET6, AF_UNIX] {
                let made = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
                process.check("a socket of family \(family)", made >= 0)
            }
            var found: UnsafeMutablePointer<addrinfo>?
            let file = path + "/socket"
            close(open(file, O_CREAT | O_WRONLY, 0o600))
            for mode in [mode_t(0o666), 0o600] {
                process.check("the mode \(mode) of a socket", chmod(file, mode) == 0)
            }
            process.check("localhost has an address", getaddrinfo("localhost", "80", nil, &found) == 0)
            process.end()
        }
    }
}
