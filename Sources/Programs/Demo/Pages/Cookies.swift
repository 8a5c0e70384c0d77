import HTTP

extension Request {
    /// What the browser keeps under that name; nil where it stands twice, since one of the two is somebody else's.
    func cookie(_ name: String) -> String? {
        let pairs = fields.values("cookie").flatMap { $0.split(separator: ";").map { String($0.drop { $0 == " " }) } }
        let values = pairs.filter { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
        return values.count == 1 ? values[0] : nil
    }
}

extension Fields.Field {
    /// For this host alone, out of reach of scripts, and never sent along with what another site begins. Without Secure: this
    /// machine's own pages have no TLS. Ports do not tell cookies apart, so a name says whose it is.
    static func cookie(_ name: String, _ value: String) -> Fields.Field {
        .init("set-cookie", "\(name)=\(value); Path=/; HttpOnly; SameSite=Strict")
    }

    /// The same for a cookie that stays when the browser is closed.
    static func lasting(_ name: String, _ value: String, _ life: Duration) -> Fields.Field {
        let age = "Max-Age=\(life.components.seconds)"
        return .init("set-cookie", "\(name)=\(value); Path=/; HttpOnly; SameSite=Strict; \(age)")
    }

    static func forgettingCookie(_ name: String) -> Fields.Field {
        .init("set-cookie", "\(name)=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
    }
}
