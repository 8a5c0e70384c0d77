/// A command, declared once. Its arguments are read and its help is printed from this declaration.
public struct Command: Sendable {
    public struct Operand: Sendable {
        public let name: String
        let about: String
        /// Whether any number of values is allowed, including none. Only the last operand may allow
        /// that.
        let isMany: Bool
        /// All values, for completion; empty if there is no list of them.
        let choices: [String]

        public init(_ name: String, _ about: String, isMany: Bool = false, choices: [String] = []) {
            self.name = name
            self.about = about
            self.isMany = isMany
            self.choices = choices
        }

        var shape: String { isMany ? "\(name)…" : name }
    }

    public struct Option: Sendable {
        public enum Takes: Sendable, Equatable {
            case nothing
            case one(String)
            /// A word that may be left out.
            case optional(String)
            /// All words up to the next option; the option may be given again.
            case many(String)
        }

        public let name: String
        let takes: Takes
        let about: String
        /// All values, for completion; empty if there is no list of them.
        public var choices: [String]

        public init(_ name: String, _ takes: Takes = .nothing, _ about: String, choices: [String] = []) {
            self.name = name
            self.takes = takes
            self.about = about
            self.choices = choices
        }

        var shape: String {
            switch takes {
            case .nothing: "--\(name)"
            case .one(let value): "--\(name) \(value)"
            case .optional(let value): "--\(name) [\(value)]"
            case .many(let value): "--\(name) \(value)…"
            }
        }
    }

    /// The words of the command, such as `website add`; empty for a program that has one command.
    public let words: [String]
    public let about: String
    /// The operands. All of them must be given, in this order.
    public let operands: [Operand]
    public var options: [Option]
    /// Further help below the table, such as an example or the next step.
    public let notes: String
    /// Complete command lines, for the help and the man page.
    public var examples: [String]

    public init(
        _ words: String, _ about: String, operands: [Operand] = [], options: [Option] = [], notes: String = "",
        examples: [String] = []
    ) {
        self.words = words.split(separator: " ").map(String.init)
        self.about = about
        self.operands = operands
        self.options = options
        self.notes = notes
        self.examples = examples
    }

    public var name: String { words.joined(separator: " ") }
}

/// The arguments of one command, read and complete.
public struct Invocation: Sendable {
    public let command: Command
    public let operands: [String]
    public let given: [String: [String]]
    /// The running relay that performs the command; nil if the tool does.
    public var host: CommandHost?

    init(command: Command, operands: [String], given: [String: [String]]) {
        self.command = command
        self.operands = operands
        self.given = given
    }

    public func has(_ option: String) -> Bool { given[option] != nil }
    public func values(_ option: String) -> [String] { given[option] ?? [] }
    public func value(_ option: String) -> String? { given[option]?.last }
    public func operand(_ index: Int) -> String { operands[index] }
}
