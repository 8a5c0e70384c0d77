import CExpat

/// Reads XML with libexpat, and hands over the elements directly below the root one after another.
/// A file of many tokens is never in memory as a whole tree.
///
/// Document types are refused, so there are no entities: nothing expands while it is read, and
/// nothing is fetched. Tested in `BadPackageTests.swift`.
enum XMLReader {
    static let mostBytes = 64 << 20
    static let mostDepth = 24
    /// The number of elements allowed inside one element below the root.
    static let mostElements = 1000
    static let mostText = 64 << 10

    /// Reads a document. `root` is called once, before the first `child`.
    static func read(
        _ bytes: [UInt8], root: (XMLElement) throws(SeedFault) -> Void,
        child: (XMLElement) throws(SeedFault) -> Void
    ) throws(SeedFault) {
        guard bytes.count <= mostBytes else {
            throw SeedFault(line: 1, "larger than \(mostBytes >> 20) MiB; split it into several files")
        }
        guard let parser = XML_ParserCreateNS(nil, Building.separator) else {
            throw SeedFault(line: 1, "not enough memory to read the file")
        }
        defer { XML_ParserFree(parser) }
        let building = Building(parser)
        XML_SetUserData(parser, Unmanaged.passUnretained(building).toOpaque())
        XML_SetElementHandler(
            parser, { Building.of($0)?.start($1, $2) }, { data, _ in Building.of(data)?.end() })
        XML_SetCharacterDataHandler(parser) { Building.of($0)?.text($1, $2) }
        XML_SetStartDoctypeDeclHandler(parser) { data, _, _, _, _ in
            Building.of(data)?.stop("a document type is not allowed in a key package")
        }
        var told = false
        var start = 0
        repeat {
            let end = min(start + 64 << 10, bytes.count)
            let status = bytes[start..<end].withUnsafeBytes { chunk in
                XML_Parse(
                    parser, chunk.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(end - start),
                    end == bytes.count ? 1 : 0)
            }
            if let fault = building.fault { throw fault }
            guard status == XML_STATUS_OK else {
                let reason = XML_ErrorString(XML_GetErrorCode(parser)).map { String(cString: $0) }
                throw SeedFault(line: building.line, "not valid XML: \(reason ?? "cannot be read")")
            }
            if !told, let element = building.root {
                try root(element)
                told = true
            }
            for element in building.take() { try child(element) }
            start = end
        } while start < bytes.count
        // The callbacks use `building` until here.
        withExtendedLifetime(building) {}
    }
}

/// The state of one document while libexpat parses it. libexpat calls it on the thread that parses,
/// and keeps no reference.
private final class Building {
    /// The separator of namespace and name. A line feed is in no name and in no namespace URI.
    static let separator = XML_Char(bitPattern: UInt8(ascii: "\n"))
    private static let known: Set<String> = [
        "urn:ietf:params:xml:ns:keyprov:pskc", "http://www.w3.org/2000/09/xmldsig#",
        "http://www.w3.org/2001/04/xmlenc#", "http://www.w3.org/2009/xmlenc11#",
        "http://www.w3.org/2009/xmldsig11#", "http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#",
    ]

    private let parser: XML_Parser
    private(set) var root: XMLElement?
    private(set) var fault: SeedFault?
    private var open: [XMLElement] = []
    private var finished: [XMLElement] = []
    private var elements = 0

    init(_ parser: XML_Parser) { self.parser = parser }

    static func of(_ data: UnsafeMutableRawPointer?) -> Building? {
        data.map { Unmanaged<Building>.fromOpaque($0).takeUnretainedValue() }
    }

    var line: Int { Int(clamping: XML_GetCurrentLineNumber(parser)) }

    func take() -> [XMLElement] {
        defer { finished = [] }
        return finished
    }

    func stop(_ message: String) {
        guard fault == nil else { return }
        fault = SeedFault(line: line, message)
        XML_StopParser(parser, XML_Bool(XML_FALSE))
    }

    func start(_ name: UnsafePointer<XML_Char>?, _ attributes: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?) {
        guard fault == nil, let name else { return }
        elements = open.count <= 1 ? 1 : elements + 1
        guard open.count < XMLReader.mostDepth, elements <= XMLReader.mostElements else {
            return stop("more elements, or deeper ones, than a key package has")
        }
        var values: [String: String] = [:]
        if var at = attributes {
            while let name = at[0], let value = at[1] {
                values[Self.local(name)] = String(cString: value)
                at += 2
            }
        }
        let element = XMLElement(name: Self.local(name), attributes: values, line: line)
        if open.isEmpty { root = element }
        open.append(element)
    }

    func end() {
        guard fault == nil, let element = open.popLast() else { return }
        if open.count == 1 {
            finished.append(element)
        } else if !open.isEmpty {
            open[open.count - 1].children.append(element)
        }
    }

    func text(_ characters: UnsafePointer<XML_Char>?, _ count: Int32) {
        // Text directly in the root has no meaning, and there may be much of it between packages.
        guard fault == nil, open.count > 1, let characters else { return }
        let bytes = UnsafeRawBufferPointer(start: characters, count: Int(count))
        open[open.count - 1].text += String(decoding: bytes, as: UTF8.self)
        if open[open.count - 1].text.utf8.count > XMLReader.mostText {
            stop("a value is longer than \(XMLReader.mostText) bytes")
        }
    }

    private static func local(_ name: UnsafePointer<XML_Char>) -> String {
        let parts = String(cString: name).split(separator: "\n", maxSplits: 1)
        guard parts.count == 2 else { return parts.first.map(String.init) ?? "" }
        return known.contains(String(parts[0])) ? String(parts[1]) : "{\(parts[0])}\(parts[1])"
    }
}
