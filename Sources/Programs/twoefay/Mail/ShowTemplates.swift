import Commands
import Daemon
import JSON
import Templates

extension Tool {
    static let showTemplates = Subcommand(
        command: Command(
            "templates show",
            "Prints the texts of mails and text messages in a built-in language, as a file to translate.",
            options: [.init("language", .one("TAG"), "en or de (default: en).")],
            notes: """
                Translate the file, save it under the name of its language (fr.po) in the directory of templates.directory,
                and test it with 'twoefayd --check' and 'twoefay mail test --language fr'. See docs/operators/templates.md.
                """)
    ) { invocation throws(Failure) in
        let language = invocation.value("language") ?? "en"
        guard let text = BuiltIn.text(of: language) else {
            throw Failure(
                .notFound, "there is no built-in language \(language)",
                next:
                    "The built-in languages are \(MessageCatalog.builtIn.languages.joined(separator: " and "))."
            )
        }
        return Report(text, json: .object(["language": .string(language), "file": .string(text)]))
    }
}
