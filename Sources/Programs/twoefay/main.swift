import Commands
import Daemon
import Glibc

exit(Tool.run(Array(CommandLine.arguments.dropFirst())))
