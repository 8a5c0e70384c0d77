import Daemon
import Glibc

exit(KeysProgram.run(Array(CommandLine.arguments.dropFirst())))
