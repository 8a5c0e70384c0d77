import Commands

/// An example of each command, for its help and the man page. `ExampleTests` reads each one as the
/// tool would, so that none is outdated.
extension Tool {
    static func examples(of command: String) -> [String] {
        (examples[command] ?? []).map { $0.isEmpty ? "twoefay \(command)" : "twoefay \(command) \($0)" }
    }

    private static let examples: [String: [String]] = [
        "demo": ["", "--terminal"],
        "fake-apns": ["--control control.yaml"],
        "fake-fcm": ["--control control.yaml"],
        "connect": [
            "--relay https://login.example.com:8080 --certificate shop.pem --socket /run/twoefay/shop.sock --group www-data",
            "--relay https://login.example.com:8080 --certificate shop.pem --listen 127.0.0.1:8081 --token-file shop.token",
        ],
        "init": ["/etc/twoefay --listen 0.0.0.0:8080 --host login.example.com"],
        "completion": ["bash"],
        "man": ["twoefayd"],
        "import": ["tokens.xml --website shop --key-file transport.key --dry-run"],
        "migrate": ["", "--storage 'mariadb://admin@db/twoefay?password_file=/etc/twoefay/db.password'"],
        "backup": ["/var/backups/twoefay-2026-11-27.db"],
        "restore": [
            "/var/backups/twoefay-2026-11-27.db --since audit-2026.jsonl",
            "/var/backups/twoefay-2026-11-27.db --yes --json",
        ],
        "rekey": ["--status"],
        "doctor": ["", "--offline --json"],
        "reload": ["", "--reason 'new certificate'"],
        "status": ["", "--json"],
    ].merging(websites) { $1 }.merging(users) { $1 }.merging(devices) { $1 }.merging(phones) { $1 }
        .merging(operations) { $1 }

    private static let websites: [String: [String]] = [
        "website add": ["shop --webhook https://shop.example.com/webhooks", "shop --number 2 --factors push,totp"],
        "website edit": ["shop --number 6 --lifetime default", "shop --limit-texts-month 2000"],
        "website list": [""],
        "website show": ["shop"],
        "website usage": ["", "shop --month 2026-11 --csv"],
        "website renew": ["shop --end 14"],
        "website revoke-key": ["shop --all"],
        "website disable": ["shop"],
        "website enable": ["shop"],
        "website remove": ["shop", "shop --yes"],
        "website crl": ["--days 90"],
        "website webhook": ["shop rotate-secret --out .", "shop replay --since 2026-11-22T08:00:00Z"],
    ]

    private static let users: [String: [String]] = [
        "user list": ["--website shop"],
        "user search": ["anna --website shop"],
        "user find": ["anna@example.com"],
        "user show": ["anna --website shop"],
        "user logins": ["anna --website shop --limit 50"],
        "user export": ["anna --website shop"],
        "user delete": ["anna --website shop"],
        "user lock": ["anna --website shop"],
        "user unlock": ["anna --website shop"],
        "user enable": ["anna --website shop"],
        "user expire": ["anna --website shop --at 2026-12-31", "anna --website shop --never"],
        "user expiring": ["", "--expired"],
        "user activate": ["anna --website shop"],
        "user confirm-identity": ["anna --website shop --by 'B. Clerk' --document passport"],
        "user recover": ["anna --website shop --factor totp"],
        "user approve-recovery": [
            "anna --website shop --factor push --code 123456 --by 'B. Clerk' --note 'in person, passport'"
        ],
        "user cancel-recovery": ["anna --website shop --factor totp"],
        "user temporary-code": [
            "anna --website shop --valid 2h", "anna --website shop --uses 2 --may-enrol",
            "anna --website shop --revoke",
        ],
        "user remove-factor": ["anna totp --website shop"],
    ]

    private static let device = "0f3ad2c4b5968778695a4b3c2d1e0f01"

    private static let devices: [String: [String]] = [
        "device list": ["anna --website shop"],
        "device show": [device],
        "device suspend": [device],
        "device resume": [device],
        "device rename": ["\(device) 'Work phone'"],
        "device verify": [device],
        "device revoke": [device, "\(device) --yes --reason 'stolen, ticket 4711'"],
        "device unlock-code": [device],
        "notice leave": ["anna 'Your token is ready at the front desk.' --website shop --title 'Token'"],
        "notice list": ["anna --website shop"],
        "notice withdraw": ["anna \(device) --website shop"],
    ]

    private static let phones: [String: [String]] = [
        "phone enrol": ["'twoefay://enrol?…' --name 'My phone'"],
        "phone list": [""],
        "phone show": ["--device shop"],
        "phone watch": ["", "--device shop --auto deny --once"],
        "phone approve": ["--number 42"],
        "phone deny": [""],
        "phone fraud": [""],
        "phone change": ["--name 'New phone'", "--renew"],
        "phone status": ["--battery 80 --screen-lock yes"],
        "phone time": [""],
        "phone pin show": [""],
        "phone pin set": [""],
        "phone pin change": [""],
        "phone pin reset": [""],
        "phone pin unlock": ["--code 12345678"],
        "phone code": ["--device shop"],
        "phone certificate": ["sign"],
        "phone sign": ["contract.pdf --tag sign --label 'Contract 4711'"],
        "phone notices": ["", "--read \(device)"],
        "phone recoveries": [""],
        "phone stop-recovery": [device],
        "phone unbind": ["--device shop"],
        "phone revoke": ["ABCD-EFGH-IJKL --relay https://login.example.com:8080"],
    ]

    private static let operations: [String: [String]] = [
        "server renew": ["", "--keep-key"],
        "server pins": ["--days 180", "--withdraw"],
        "server switch": [""],
        "server finish": [""],
        "authority replace": ["websites"],
        "authority finish": ["phones"],
        "directory list": [""],
        "directory test": ["staff"],
        "directory sync": ["staff --dry-run"],
        "mail test": ["--to anna@example.com --what all --language de"],
        "sms test": ["--to +4915112345678"],
        "templates show": ["--language de"],
        "outbox list": ["--dead --website shop"],
        "outbox replay": [device, "--all-dead"],
        "outbox drop": [device],
        "keys list": [""],
        "keys roll": ["nonces"],
        "rows verify": ["", "user device"],
        "rows adopt": ["user \(device) --reason 'ticket 4711: new address'"],
        "audit verify": ["", "--heads /var/log/twoefay/audit-heads.jsonl"],
        "audit tail": ["--count 50"],
        "audit search": [
            "--website shop --user anna --since 2026-11-01", "--actor operator --event user.",
            "--challenge \(device)",
        ],
        "audit export": ["--out audit-2026.jsonl --since 2026-01-01 --until 2027-01-01"],
    ]
}
