import Commands
import Daemon
import Glibc

exit(DaemonProgram.run(Array(CommandLine.arguments.dropFirst()), RelayCommands()))
