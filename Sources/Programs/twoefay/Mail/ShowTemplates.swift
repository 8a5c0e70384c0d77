import Daemon
import JSON
import Templates

extension Tool {
    static let showTemplates = Subcommand(
        command: Command(
            "templates show",
            "Prints what mails and text messages say in a built-in language, as a file to begin with.",
            options: [.init("language", .one("TAG"), "en or de; en if not given.")],
            notes: """
                Translate it, save it under its language's name (fr.po) in the directory that templates.directory names,
                and try it with 'twoefayd --check' and 'twoefay mail test --language fr'.
                docs/operators/templates.md says more.
                """)
    ) { invocation throws(Failure) in
        let language = invocation.value("language") ?? "en"
        guard let text = BuiltIn.text(of: language) else {
            throw Failure(
                .notFound, "\(language) is not built in",
                next:
                    "There are \(MessageCatalog.builtIn.languages.joined(separator: " and ")). Others are in your own files."
            )
        }
        return Report(text, json: .object(["language": .string(language), "file": .string(text)]))
    }
}
