-- Two roles that only read, for MariaDB. docs/operators/sql.md says who needs which. It can run again.
-- Run it in the relay's database, as an account that owns the tables and may create roles.

CREATE ROLE IF NOT EXISTS twoefay_helpdesk;
GRANT SELECT ON LockedUsers TO twoefay_helpdesk;
GRANT SELECT ON Logins TO twoefay_helpdesk;
GRANT SELECT ON OpenChallenges TO twoefay_helpdesk;
GRANT SELECT ON DeliveryFailures TO twoefay_helpdesk;
GRANT SELECT ON Phones TO twoefay_helpdesk;
GRANT SELECT ON AuditTrail TO twoefay_helpdesk;
-- The columns by which a user is named in a question. No token, address or number is among them.
GRANT SELECT (id, name, state) ON website TO twoefay_helpdesk;
GRANT SELECT (id, website_id, username, state, expires_at, expires_by, created_at) ON user TO twoefay_helpdesk;

CREATE ROLE IF NOT EXISTS twoefay_auditor;
GRANT twoefay_helpdesk TO twoefay_auditor;
GRANT SELECT ON UsersByState TO twoefay_auditor;
GRANT SELECT ON FactorMix TO twoefay_auditor;
GRANT SELECT ON LoginsByHour TO twoefay_auditor;
GRANT SELECT ON AnswerTimes TO twoefay_auditor;
GRANT SELECT ON Backlog TO twoefay_auditor;
GRANT SELECT ON WebsiteUsage TO twoefay_auditor;
GRANT SELECT ON PhonesByAge TO twoefay_auditor;
GRANT SELECT ON PhonesByState TO twoefay_auditor;
GRANT SELECT ON AttestedPhones TO twoefay_auditor;
GRANT SELECT ON audit TO twoefay_auditor;
GRANT SELECT (challenge_id, ordinal, factor, state, at, reason) ON step TO twoefay_auditor;
GRANT SELECT (id, kind, event, website_id, challenge_id, created_at, dead_at, due_at, attempts, reason) ON outbox
    TO twoefay_auditor;
