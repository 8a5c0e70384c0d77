extension Migration {
    /// Adds the former certificates of websites' keys, and the claims of phones that are pages. Shows the states of PIN and PUK, the verdict on
    /// the attestation, and the mark of a restore in the view `Phones`.
    ///
    /// MariaDB replaces a view at once, so no reader misses it, and keeps the grants on its name.
    static let schema3 = Migration(
        version: 3, worksOn: 2, least: 2,
        summary: "the tables website_certificate for renewals by websites and web_phone for pages that are phones; the "
            + "view Phones also shows the states of PIN and PUK, the attestation and verify_since",
        file: """
            CREATE TABLE IF NOT EXISTS website_certificate (
                issuer binary(32) NOT NULL,
                serial varchar(40) NOT NULL,
                thumbprint binary(32) NOT NULL,
                website_id binary(16) NOT NULL,
                not_before datetime(3) NOT NULL,
                not_after datetime(3) NOT NULL,
                used_at datetime(3),
                PRIMARY KEY (issuer, serial)
            ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

            CREATE INDEX IF NOT EXISTS website_certificate_key ON website_certificate (thumbprint);

            CREATE TABLE IF NOT EXISTS web_phone (
                device_id binary(16) NOT NULL PRIMARY KEY,
                user_id binary(16) NOT NULL,
                app varchar(128) NOT NULL,
                rp varchar(128),
                credential varchar(256),
                public_key binary(65),
                is_apart smallint NOT NULL,
                operation binary(16) NOT NULL,
                mac binary(36)
            ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

            CREATE INDEX IF NOT EXISTS web_phone_user ON web_phone (user_id);

            /*M! CREATE OR REPLACE VIEW Phones AS */ /*S! DROP VIEW IF EXISTS Phones; CREATE VIEW Phones AS */
            SELECT w.name AS website, u.username, lower(hex(d.id)) AS device, d.name, d.platform, d.state, d.stopped_by,
                u.state AS user_state, u.expires_at, d.login_successes, d.login_failures,
                d.failures AS wrong_numbers, d.created_at, d.last_seen_at,
                (SELECT max(f.last_code_at) FROM factor f WHERE f.user_id = u.id) AS last_code_at,
                CASE WHEN d.pin_key IS NULL THEN 'none' WHEN d.pin_failures >= 3 THEN 'locked' ELSE 'set' END AS pin,
                CASE WHEN d.pin_key IS NULL THEN 'none' WHEN d.puk_failures >= 5 THEN 'locked' ELSE 'set' END AS puk,
                coalesce(a.verdict, 'none') AS attestation, coalesce(a.faults, '') AS attestation_faults,
                d.verify_since, r.os, r.os_version, r.patch_level, r.app_version, r.model, r.battery, r.screen_lock,
                r.rooted, r.reported_at, r.received_at
            FROM device d JOIN user u ON u.id = d.user_id JOIN website w ON w.id = u.website_id
            LEFT JOIN attestation a ON a.device_id = d.id LEFT JOIN device_report r ON r.device_id = d.id;
            """)
}
