<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Base64Url;
use Twoefay\DatabaseStore;
use Twoefay\SQLiteStore;
use Twoefay\Store;

/** All stores keep the same promises. */
final class StoresTest extends TestCase
{
    private const NOW = 1_795_334_400;
    private const KEY = ['kty' => 'EC', 'crv' => 'P-256', 'x' => 'x', 'y' => 'y'];
    private const OTHER = ['x' => 'z'] + self::KEY;

    private string $directory;
    private string $name;
    private Store $store;

    protected function setUp(): void
    {
        $this->directory = Directory::make();
        $kind = $this->getProvidedData()[0] ?? 'memory';
        $this->name = Stores::name($kind, $this->directory);
        $this->store = Stores::open($this->name);
        foreach (['ada', 'bob', 'Ada', 'ada ', 'áda', "ada\0", '47'] as $username) {
            $this->store->forget($username);
        }
    }

    protected function tearDown(): void
    {
        Directory::remove($this->directory);
    }

    public static function kinds(): array
    {
        return [['memory'], ['sqlite'], ['postgresql'], ['mysql']];
    }

    public static function shared(): array
    {
        return [['sqlite'], ['postgresql'], ['mysql']];
    }

    /** @dataProvider kinds */
    public function testRequestIsSpentOnce(string $kind): void
    {
        $this->store->open('r1', 1000);
        self::assertTrue($this->store->spend('r1'));
        self::assertFalse($this->store->spend('r1'));
        self::assertFalse($this->store->spend('never'));
    }

    /** @dataProvider shared */
    public function testOneOfManyProcessesSpendsARequest(string $kind): void
    {
        $this->store->open('r1', self::NOW);
        $results = Stores::race($this->name, 'spend', array_fill(0, 8, ['r1']));
        sort($results);
        self::assertSame([...array_fill(0, 7, false), true], $results);
    }

    /** @dataProvider kinds */
    public function testOldRequestsAreDeleted(string $kind): void
    {
        $this->store->open('old', 1000);
        $this->store->open('new', 1000 + 86_402);
        self::assertFalse($this->store->spend('old'));
        self::assertTrue($this->store->spend('new'));
    }

    /** @dataProvider kinds */
    public function testPinnedKeyIsNeverReplaced(string $kind): void
    {
        self::assertTrue($this->pin('ada', 'd1'));
        self::assertFalse($this->pin('ada', 'd1', self::OTHER));
        self::assertSame(['d1' => self::KEY], $this->store->pins('ada'));
        $this->store->unpin('ada', 'd1');
        $this->store->unpin('ada', 'd1');
        self::assertSame([], $this->store->pins('ada'));
    }

    /** @dataProvider kinds */
    public function testAllMembersOfAWebPhoneAreKept(string $kind): void
    {
        $text = str_repeat('x', 43);
        $key = ['kty' => 'EC', 'crv' => 'P-256', 'x' => $text, 'y' => $text];
        $host = str_repeat('h', 120);
        $credential = ['rp' => $host, 'id' => str_repeat('i', 256), 'jwk' => $key];
        $record = $key + ['app' => "https://$host", 'webauthn' => $credential]; // the longest one
        self::assertTrue($this->pin('ada', 'd1', $record));
        self::assertTrue($this->pin('ada', 'd2', $key + ['app' => 'https://phone.example.com']));
        self::assertTrue($this->pin('ada', 'd3'));
        $phones = $this->store->pins('ada');
        ksort($phones);
        $second = $key + ['app' => 'https://phone.example.com'];
        self::assertSame(['d1' => $record, 'd2' => $second, 'd3' => self::KEY], $phones);
    }

    /** @dataProvider shared */
    public function testSecretPinsOnePhone(string $kind): void
    {
        $k = str_repeat('k', 32);
        $this->store->addSecret('ada', $k, self::NOW);
        $calls = array_map(fn(int $i) => ['ada', "d$i", self::KEY, $k], range(0, 7));
        $results = Stores::race($this->name, 'pin', $calls);
        sort($results);
        self::assertSame([...array_fill(0, 7, false), true], $results);
        self::assertCount(1, $this->store->pins('ada'));
    }

    /** @dataProvider shared */
    public function testPhonesOfManyUsersArePinnedAtOnce(string $kind): void
    {
        $calls = [];
        for ($i = 0; $i < 8; $i++) {
            $this->store->forget("user $i");
            $k = random_bytes(32);
            $this->store->addSecret("user $i", $k, self::NOW);
            $calls[] = ["user $i", 'd1', self::KEY, $k];
        }
        $results = Stores::race($this->name, 'pin', $calls);
        self::assertSame(array_fill(0, 8, true), $results);
        for ($i = 0; $i < 8; $i++) {
            self::assertSame(['d1' => self::KEY], $this->store->pins("user $i"));
            $this->store->forget("user $i");
        }
    }

    /** @dataProvider kinds */
    public function testPinClosesAllOpenEnrolments(string $kind): void
    {
        foreach (['ada', 'bob'] as $name) {
            $this->store->addSecret($name, "1 $name", self::NOW);
            $this->store->addSecret($name, "2 $name", self::NOW);
        }
        self::assertFalse($this->store->pin('ada', 'd1', self::KEY, '1 bob'));
        self::assertTrue($this->store->pin('ada', 'd1', self::KEY, '1 ada'));
        self::assertFalse($this->store->pin('ada', 'd2', self::KEY, '2 ada'));
        self::assertSame([], $this->store->secrets('ada', self::NOW));
        self::assertCount(2, $this->store->secrets('bob', self::NOW));
        self::assertSame(['d1' => self::KEY], $this->store->pins('ada'));
        // A key that is there already uses up no secret: the phone that has it is still to come.
        $this->store->addSecret('ada', '3 ada', self::NOW);
        self::assertFalse($this->store->pin('ada', 'd1', self::OTHER, '3 ada'));
        self::assertSame(['3 ada'], $this->store->secrets('ada', self::NOW));
    }

    /** @dataProvider kinds */
    public function testOldSecretsDoNotCount(string $kind): void
    {
        $k = random_bytes(32);
        $this->store->addSecret('ada', $k, self::NOW);
        self::assertSame([$k], $this->store->secrets('ada', self::NOW + 86_399));
        self::assertSame([], $this->store->secrets('ada', self::NOW + 86_400));
    }

    /** @dataProvider kinds */
    public function testUnpinnedPhoneLeavesATrace(string $kind): void
    {
        self::assertFalse($this->store->wasPinned('ada'));
        $this->pin('ada', 'd1');
        $this->store->unpin('ada', 'd1');
        self::assertSame([], $this->store->pins('ada'));
        self::assertTrue($this->store->wasPinned('ada'));
        self::assertFalse($this->store->wasPinned('bob'));
        $this->pin('ada', 'd1', self::OTHER);
        self::assertSame([], $this->store->pins('ada')); // a lost phone never comes back
        $this->pin('ada', 'd2');
        self::assertSame(['d2' => self::KEY], $this->store->pins('ada'));
        $this->store->forget('ada');
        self::assertFalse($this->store->wasPinned('ada'));
    }

    /** @dataProvider kinds */
    public function testOnlyTheUsersOwnPhoneIsUnpinned(string $kind): void
    {
        foreach (['ada', 'bob'] as $name) {
            $this->store->addUser($name, "token of $name");
            $this->pin($name, 'd1');
        }
        $this->store->unpin('bob', 'd1');
        $this->store->unpinByToken('token of nobody', 'd1');
        self::assertSame(['d1' => self::KEY], $this->store->pins('ada'));
        self::assertSame([], $this->store->pins('bob'));
        $this->store->unpinByToken('token of ada', 'd1');
        self::assertSame([], $this->store->pins('ada'));
    }

    /** @dataProvider kinds */
    public function testUnpinnedPhoneIsNotPinnedLater(string $kind): void
    {
        $this->store->addUser('ada', 'token of ada');
        $unpins = [
            fn() => $this->store->unpin('ada', 'd1'),
            fn() => $this->store->unpinByToken('token of ada', 'd1'),
        ];
        $this->store->addSecret('bob', 'k of bob', self::NOW);
        foreach ($unpins as $unpin) { // before the phone was pinned
            $this->store->addSecret('ada', 'k1', self::NOW);
            $unpin();
            self::assertSame([], $this->store->secrets('ada', self::NOW));
            self::assertFalse($this->store->pin('ada', 'd1', self::KEY, 'k1'));
        }
        $this->pin('ada', 'd1');
        $this->store->addSecret('ada', 'k2', self::NOW);
        $unpins[0]();
        self::assertSame([], $this->store->secrets('ada', self::NOW));
        // The relay's webhook about it comes when the help desk shows another code already.
        $this->store->addSecret('ada', 'k3', self::NOW);
        $unpins[1]();
        self::assertSame(['k3'], $this->store->secrets('ada', self::NOW));
        self::assertSame(['k of bob'], $this->store->secrets('bob', self::NOW));
    }

    /**
     * @testWith ["postgresql"]
     *           ["mysql"]
     */
    public function testPhoneIsUnpinnedWhileItIsPinned(string $kind): void
    {
        $this->store->addSecret('ada', 'k', self::NOW);
        $dsn = substr($this->name, strlen($kind) + 1);
        $unpin = fn() => $this->store->unpin('ada', 'd1');
        $store = new DatabaseStore(fn() => new MeetingPdo($dsn, 'UPDATE twoefay_secret', $unpin));
        self::assertFalse($store->pin('ada', 'd1', self::KEY, 'k'));
        self::assertSame([], $this->store->pins('ada'));
    }

    public function testUsersDoNotWaitForEachOther(): void
    {
        $name = Stores::name('mysql', $this->directory);
        $store = Stores::open($name);
        foreach (['ada', 'bob'] as $user) {
            $store->forget($user);
            $store->addUser($user, "token of $user");
            $store->addSecret($user, "k of $user", self::NOW);
        }
        $request = bin2hex(random_bytes(16));
        $store->open($request, self::NOW);
        $db = new \PDO(explode(' ', $name, 2)[1]);
        $db->beginTransaction();
        foreach (['user', 'secret'] as $table) {
            $locks = $db->prepare("SELECT * FROM twoefay_$table WHERE name = ? FOR UPDATE");
            $locks->execute([hash('sha256', 'ada')]);
        }
        $locks = $db->prepare('SELECT * FROM twoefay_request WHERE request = ? FOR UPDATE');
        $locks->execute([$request]);
        $store->open(bin2hex(random_bytes(16)), self::NOW);
        self::assertTrue($store->pin('bob', 'd1', self::KEY, 'k of bob'));
        $store->unpinByToken('token of bob', 'd1');
        self::assertSame([], $store->pins('bob'));
        $db->rollBack();
    }

    /** @dataProvider kinds */
    public function testNamesAreComparedExactly(string $kind): void
    {
        $this->store->addUser('ada', 't1');
        $this->pin('ada', 'd1');
        foreach (['Ada', 'ada ', 'áda', "ada\0"] as $other) {
            self::assertSame([], $this->store->pins($other));
            self::assertNull($this->store->token($other));
            $this->store->forget($other);
            self::assertSame(['d1' => self::KEY], $this->store->pins('ada'));
            self::assertSame('t1', $this->store->token('ada'));
        }
        $this->store->addUser('ada', 't2');
        self::assertSame('t2', $this->store->token('ada'));
        $this->store->forget('ada');
        self::assertSame([], $this->store->pins('ada'));
        self::assertNull($this->store->token('ada'));
        self::assertSame([], $this->store->secrets('ada', self::NOW));
    }

    /** @dataProvider kinds */
    public function testNamesThatAreDigitsAreTexts(string $kind): void
    {
        $this->store->addUser('47', '48');
        $this->pin('47', '49');
        self::assertSame('48', $this->store->token('47'));
        $this->store->unpinByToken('48', '49');
        self::assertSame([], $this->store->pins('47'));
        self::assertTrue($this->store->wasPinned('47'));
        $this->store->open('50', self::NOW);
        self::assertTrue($this->store->spend('50'));
    }

    /** @dataProvider kinds */
    public function testEventsAreRemembered(string $kind): void
    {
        [$first, $second] = [bin2hex(random_bytes(8)), bin2hex(random_bytes(8))];
        self::assertFalse($this->store->hasSeen($first));
        $this->store->see($first, 1000);
        $this->store->see($first, 1000);
        self::assertTrue($this->store->hasSeen($first));
        $this->store->see($second, 1000 + 31 * 86_400);
        self::assertFalse($this->store->hasSeen($first));
        self::assertTrue($this->store->hasSeen($second));
    }

    /** @dataProvider shared */
    public function testProcessesMakeTheTablesAtOnce(string $kind): void
    {
        foreach ($kind === 'sqlite' ? [] : ['user', 'secret', 'phone', 'request', 'event'] as $table) {
            (new \PDO(substr($this->name, strlen($kind) + 1)))->exec("DROP TABLE twoefay_$table");
        }
        $name = $kind === 'sqlite' ? "sqlite $this->directory/new.db" : $this->name;
        $calls = array_map(fn(int $i) => ["user $i", 'token'], range(0, 7));
        self::assertSame(array_fill(0, 8, null), Stores::race($name, 'addUser', $calls));
    }

    /** @dataProvider shared */
    public function testManyProcessesDeleteOldRequestsAtOnce(string $kind): void
    {
        for ($i = 0; $i < 100; $i++) {
            $this->store->open("old $i", 1000);
        }
        $calls = array_map(fn(int $i) => ["new $i", 1000 + 86_402], range(0, 7));
        self::assertSame(array_fill(0, 8, null), Stores::race($this->name, 'open', $calls));
    }

    /** @dataProvider shared */
    public function testOneUserIsAddedByManyProcessesAtOnce(string $kind): void
    {
        $calls = array_fill(0, 8, ['ada', 'token']);
        self::assertSame(array_fill(0, 8, null), Stores::race($this->name, 'addUser', $calls));
        self::assertSame('token', $this->store->token('ada'));
    }

    /**
     * @testWith ["postgresql"]
     *           ["mysql"]
     */
    public function testUserIsAddedBetweenTheStatementsOfAnother(string $kind): void
    {
        $dsn = substr($this->name, strlen($kind) + 1);
        $meet = function (): void {
            $this->store->addUser('ada', 'first');
        };
        $store = new DatabaseStore(fn() => new MeetingPdo($dsn, 'INSERT INTO twoefay_user', $meet));
        $this->store->addUser('bob', 'makes the tables');
        $store->addUser('ada', 'second');
        self::assertSame('second', $this->store->token('ada'));
    }

    public function testOtherErrorsAreNotHidden(): void
    {
        $file = "$this->directory/odd.db";
        (new \PDO("sqlite:$file"))->exec('CREATE TABLE twoefay_event (other TEXT)');
        $this->expectException(\PDOException::class);
        (new SQLiteStore($file))->see('e', 1);
    }

    public function testFailedWorkChangesNothing(): void
    {
        $file = "$this->directory/odd.db";
        $store = new SQLiteStore($file);
        $store->addSecret('ada', 'k', self::NOW);
        $db = new \PDO("sqlite:$file");
        $db->exec('DROP TABLE twoefay_phone');
        $db->exec('CREATE TABLE twoefay_phone (other TEXT)');
        try {
            $store->pin('ada', 'd1', self::KEY, 'k');
            self::fail('the error is hidden');
        } catch (\PDOException) {
            self::assertSame(['k'], $store->secrets('ada', self::NOW));
        }
    }

    public function testConnectionOfSilentErrorsIsMadeLoud(): void
    {
        $file = "$this->directory/silent.db";
        $silent = [\PDO::ATTR_ERRMODE => \PDO::ERRMODE_SILENT];
        $store = new DatabaseStore(fn() => new \PDO("sqlite:$file", null, null, $silent));
        $store->addUser('ada', 't'); // the table is missing first
        self::assertSame('t', $store->token('ada'));
    }

    public function testSecretIsInNoTrace(): void
    {
        $file = "$this->directory/full.db";
        $store = new SQLiteStore($file);
        $store->addSecret('ada', 'another', self::NOW);
        (new \PDO("sqlite:$file"))->exec('CREATE TRIGGER full BEFORE INSERT ON twoefay_secret'
            . " BEGIN SELECT RAISE(ABORT, 'full'); END");
        $ignored = ini_set('zend.exception_ignore_args', '0');
        try {
            $store->addSecret('ada', 'the secret k', self::NOW);
            self::fail('the error is hidden');
        } catch (\PDOException $error) {
            $arguments = '';
            foreach ($error->getTrace() as $frame) {
                if (($frame['class'] ?? '') === self::class) {
                    break;
                }
                $arguments .= var_export($frame['args'] ?? [], true);
            }
            self::assertStringContainsString('INSERT INTO twoefay_secret', $arguments);
            self::assertStringNotContainsString(Base64Url::encode('the secret k'), $arguments);
            self::assertStringNotContainsString('the secret k', $arguments);
        } finally {
            ini_set('zend.exception_ignore_args', $ignored);
        }
    }

    /** @dataProvider shared */
    public function testReadmesPersistentConnectionIsTheStoresOwn(string $kind): void
    {
        $readme = file_get_contents(__DIR__ . '/../README.md');
        self::assertSame(1, preg_match('/\[PDO::ATTR_PERSISTENT => [^]]+\]/', $readme, $found));
        $options = eval("return $found[0];");
        $dsn = substr($this->name, strlen($kind) + 1);
        $dsn = $kind === 'sqlite' ? "sqlite:$dsn" : $dsn;
        $website = new \PDO($dsn, null, null, [\PDO::ATTR_PERSISTENT => true]);
        $website->exec('DROP TABLE IF EXISTS orders');
        $website->exec('CREATE TABLE orders (number INT)');
        $store = new DatabaseStore(fn() => new \PDO($dsn, null, null, $options));
        $store->open('r1', self::NOW);
        $website->beginTransaction();
        $kind === 'sqlite' || $website->exec('INSERT INTO orders VALUES (1)'); // SQLite has one writer
        self::assertTrue($store->spend('r1'));
        self::assertTrue($website->inTransaction());
        $website->rollBack();
        self::assertFalse($store->spend('r1'));
        self::assertSame([], $website->query('SELECT number FROM orders')->fetchAll());
    }

    public function testRelativePathIsRefused(): void
    {
        $this->expectExceptionMessage('absolute');
        new SQLiteStore('shop.db');
    }

    public function testOthersCannotReadTheFile(): void
    {
        (new SQLiteStore("$this->directory/new.db"))->open('r', self::NOW);
        self::assertSame(0o600, fileperms("$this->directory/new.db") & 0o777);
    }

    public function testMemoryOfSqliteIsRefused(): void
    {
        $this->expectExceptionMessage('MemoryStore');
        new SQLiteStore(':memory:');
    }

    private function pin(string $username, string $device, array $jwk = self::KEY): bool
    {
        $k = random_bytes(32);
        $this->store->addSecret($username, $k, self::NOW);
        return $this->store->pin($username, $device, $jwk, $k);
    }
}
