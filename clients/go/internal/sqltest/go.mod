// The tests of SQLStore are a module of their own: they need drivers, and the package needs none.
module twoefay/internal/sqltest

go 1.19

require (
	github.com/go-sql-driver/mysql v1.7.0
	github.com/lib/pq v1.10.7
	github.com/mattn/go-sqlite3 v1.14.16
	twoefay v0.0.0
)

replace twoefay => ../..

// The drivers of Debian's packages golang-github-…-dev.
replace (
	github.com/go-sql-driver/mysql => /usr/share/gocode/src/github.com/go-sql-driver/mysql
	github.com/lib/pq => /usr/share/gocode/src/github.com/lib/pq
	github.com/mattn/go-sqlite3 => /usr/share/gocode/src/github.com/mattn/go-sqlite3
)
