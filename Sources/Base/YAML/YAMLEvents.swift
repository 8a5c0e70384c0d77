import CYAML

/// An event of libyaml's parser, as Swift values.
struct YAMLEvent {
    enum Kind {
        case streamStart
        case streamEnd
        case documentStart
        case documentEnd
        case alias
        case scalar(String, isPlain: Bool)
        case sequenceStart
        case sequenceEnd
        case mappingStart
        case mappingEnd
    }

    let kind: Kind
    let place: YAMLPosition
    /// Whether it has an anchor or is an alias.
    let isAnchored: Bool
    let isTagged: Bool
}

/// libyaml's parser. The input bytes must outlive it.
struct YAMLEvents: ~Copyable {
    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let text: SourceText

    init(_ input: UnsafeBufferPointer<UInt8>, text: SourceText) {
        self.text = text
        parser = .allocate(capacity: 1)
        parser.initialize(to: yaml_parser_t())
        precondition(yaml_parser_initialize(parser) == 1, "libyaml fails only without memory")
        // Without this, libyaml may take the first bytes for a mark of UTF-16.
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, input.baseAddress, input.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
    }

    mutating func next() throws(YAMLError) -> YAMLEvent {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else { throw failure() }
        defer { yaml_event_delete(&event) }
        let place = place(event.start_mark)
        var anchor: UnsafeMutablePointer<yaml_char_t>?
        var tag: UnsafeMutablePointer<yaml_char_t>?
        let kind: YAMLEvent.Kind
        switch event.type {
        case YAML_STREAM_START_EVENT: kind = .streamStart
        case YAML_DOCUMENT_START_EVENT: kind = .documentStart
        case YAML_DOCUMENT_END_EVENT: kind = .documentEnd
        case YAML_ALIAS_EVENT:
            anchor = event.data.alias.anchor
            kind = .alias
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            (anchor, tag) = (scalar.anchor, scalar.tag)
            let value = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            kind = .scalar(
                String(decoding: value, as: UTF8.self), isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE)
        case YAML_SEQUENCE_START_EVENT:
            (anchor, tag) = (event.data.sequence_start.anchor, event.data.sequence_start.tag)
            kind = .sequenceStart
        case YAML_SEQUENCE_END_EVENT: kind = .sequenceEnd
        case YAML_MAPPING_START_EVENT:
            (anchor, tag) = (event.data.mapping_start.anchor, event.data.mapping_start.tag)
            kind = .mappingStart
        case YAML_MAPPING_END_EVENT: kind = .mappingEnd
        default: kind = .streamEnd
        }
        return YAMLEvent(kind: kind, place: place, isAnchored: anchor != nil, isTagged: tag != nil)
    }

    private func place(_ mark: yaml_mark_t) -> YAMLPosition {
        YAMLPosition(file: text.file, line: mark.line + 1, column: mark.column + 1)
    }

    private func failure() -> YAMLError {
        let problem = parser.pointee.problem.map { String(cString: $0) } ?? "cannot be read"
        if parser.pointee.error == YAML_READER_ERROR {
            return YAMLError(problem, at: text.place(ofByte: parser.pointee.problem_offset))
        }
        let mark = parser.pointee.problem_mark
        if text.byte(line: mark.line, column: mark.column) == UInt8(ascii: "\t") {
            return YAMLError("a tab is not allowed for indentation; use spaces", at: place(mark))
        }
        let context = parser.pointee.context.map { String(cString: $0) + ", " } ?? ""
        return YAMLError(context + problem, at: place(mark))
    }
}
