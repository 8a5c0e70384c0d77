<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\ApprovalRequired;
use Twoefay\Conflict;
use Twoefay\Factor;
use Twoefay\Invalid;
use Twoefay\MemoryStore;
use Twoefay\NotFound;
use Twoefay\ReceiptError;
use Twoefay\Relay;
use Twoefay\SQLiteStore;
use Twoefay\Store;

/** The whole conversation with a real relay and a real phone. */
final class RealRelayTest extends TestCase
{
    private const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64) Firefox/144.0';

    private RealRelay $real;

    protected function setUp(): void
    {
        $this->real = RealRelay::shared();
    }

    private function enrolled(string $username, Store $store = new MemoryStore()): Relay
    {
        $relay = $this->real->client($store);
        $this->real->enrol($relay->register($username)->uri, $username);
        self::assertCount(1, $relay->confirm($username));
        return $relay;
    }

    private function assertRefused(string $reason, \Closure $call): void
    {
        try {
            $call();
        } catch (ReceiptError $error) {
            self::assertSame($reason, $error->reason);
            return;
        }
        self::fail("not refused for $reason");
    }

    public function testLoginIsApprovedOnce(): void
    {
        $store = new SQLiteStore("{$this->real->directory}/ada.db");
        $relay = $this->real->client($store);
        $made = $relay->register('ada', email: 'ada@example.com');
        self::assertSame($made->uri, QrCodeTest::read(QrCodeTest::svgAsImage($made->qr())));
        self::assertFalse($relay->isEnrolled('ada'));
        self::assertSame([], $relay->confirm('ada'));
        $this->real->enrol($made->uri, 'ada');
        $details = [
            ['label' => 'amount', 'value' => 'EUR 40.00'],
            ['label' => 'to', 'value' => 'Café Zoë'],
        ];
        $login = $relay->ask(
            'ada',
            ip: '192.0.2.7',
            userAgent: self::BROWSER,
            service: 'Payments',
            action: 'Pay',
            details: $details,
        );
        self::assertSame('open', $relay->wait($login, within: 0)->state);
        $challenge = $login->challenge;
        self::assertSame(0, $this->real->answer('approve', $challenge, $login->number, 'ada'));
        $decision = $relay->wait($login); // it also pins the phone, which was bound since
        self::assertTrue($decision->approved);
        self::assertSame(['signed', 'none'], [$decision->proof, $decision->userVerification]);
        self::assertTrue($relay->isEnrolled('ada'));
        self::assertSame([], $store->secrets('ada', time()));
        $this->assertRefused('request_used', fn() => $relay->wait($login));
        $kinds = array_map(fn(Factor $factor) => $factor->kind, $relay->factors('ada'));
        self::assertSame(['pull', 'mail'], $kinds);
    }

    public function testWaitingEndsWithTheAnswer(): void
    {
        $relay = $this->enrolled('bob');
        $login = $relay->ask('bob');
        $phone = $this->real->answering('deny', $login->challenge, null, 'bob');
        $decision = $relay->wait($login);
        self::assertSame(['denied', 'denied'], [$decision->state, $decision->reason]);
        self::assertFalse($decision->approved);
        self::assertSame(0, $phone->end()[1]);
    }

    public function testWrongNumberIsDenied(): void
    {
        $relay = $this->enrolled('cleo');
        $login = $relay->ask('cleo');
        $wrong = $login->number === '11' ? '12' : '11';
        self::assertSame(1, $this->real->answer('approve', $login->challenge, $wrong, 'cleo'));
        self::assertSame('wrong_number', $relay->wait($login)->reason);
    }

    /**
     * @testWith [2, 2]
     *           [6, 2]
     *           [6, 6]
     *           [0, 0]
     */
    public function testClientChoosesTheNumberOfThePolicy(int $digits, int $least): void
    {
        $website = "digits-$digits-$least";
        $this->real->operate('website', 'add', $website, '--number', (string) $digits);
        $relay = $this->real->client(new MemoryStore(), $website, leastDigits: $least);
        $this->real->enrol($relay->register('ada')->uri, $website);
        $login = $relay->ask('ada');
        self::assertSame($digits, strlen($login->number ?? ''));
        self::assertSame(0, $this->real->answer('approve', $login->challenge, $login->number, $website));
        self::assertTrue($relay->wait($login)->approved);
    }

    public function testTextsOfABrowserRefuseNoLogin(): void
    {
        $relay = $this->enrolled('dora');
        $visitors = [
            '10.0.0.1:5555' => '',
            '::ffff:192.0.2.7' => "Evil\u{202e}\u{200b}\0/1\u{3164}",
            '2001:DB8::1' => str_repeat('x', 9000),
            '::1' => "\u{e0100}\u{fe0f}",
            '::1.2.3.4' => 'Ünïcödé 😀',
            '192.0.2.7' => "Evil\xff/1\u{a0}\u{2003}b",
        ];
        foreach ($visitors as $ip => $browser) {
            $login = $relay->ask('dora', ip: $ip, userAgent: $browser, acceptLanguage: "\n");
            $challenge = $login->challenge;
            self::assertSame(0, $this->real->answer('approve', $challenge, $login->number, 'dora'));
            self::assertTrue($relay->wait($login)->approved, json_encode($login->sent));
        }
    }

    public function testRenamedWebsiteStillLetsIn(): void
    {
        $relay = $this->enrolled('emil');
        $this->real->operate('website', 'edit', 'shop', '--display-name', 'The Better Shop');
        $login = $relay->ask('emil');
        $challenge = $login->challenge;
        self::assertSame(0, $this->real->answer('approve', $challenge, $login->number, 'emil'));
        self::assertTrue($relay->wait($login)->approved);
    }

    public function testUserWithoutPinnedPhoneIsNotLetIn(): void
    {
        $store = new MemoryStore();
        $relay = $this->enrolled('fay', $store);
        $store->unpin('fay', $relay->user('fay')['devices'][0]['device']);
        foreach ([[false, false], [true, false], [true, true]] as [$trusts, $isApproved]) {
            if ($isApproved) {
                $relay->reset('fay');
            }
            self::assertSame(!$isApproved, $relay->isEnrolled('fay'));
            $relay = $this->real->client($store, allowUnpinned: $trusts);
            $login = $relay->ask('fay');
            $challenge = $login->challenge;
            self::assertSame(0, $this->real->answer('approve', $challenge, $login->number, 'fay'));
            if ($isApproved) {
                self::assertTrue($relay->wait($login)->approved);
            } else {
                $this->assertRefused('unknown_device', fn() => $relay->wait($login));
            }
        }
    }

    public function testFurtherPhoneNeedsAnApproval(): void
    {
        $relay = $this->enrolled('gil');
        try {
            $relay->enrolment('gil');
            self::fail('a password alone binds a further phone');
        } catch (ApprovalRequired $error) {
            $challenge = $error->challenge();
        }
        self::assertSame(0, $this->real->answer('approve', $challenge, $error->number(), 'gil'));
        $this->real->enrol($relay->enrolment('gil', approval: $challenge)->uri, 'gil2');
        [$device] = $relay->confirm('gil');
        $relay->unbind('gil', $device);
        $relay->unbind('gil', $device);
        self::assertCount(1, $relay->store->pins('gil'));
    }

    public function testRefusalsAreTypes(): void
    {
        $relay = $this->real->client(new MemoryStore());
        $relay->register('hal');
        $refusals = [
            [Conflict::class, fn() => $relay->register('hal')],
            [NotFound::class, fn() => $relay->factors('nobody')],
            [Invalid::class, fn() => $relay->ask('hal', service: str_repeat('x', 65))],
        ];
        foreach ($refusals as [$kind, $call]) {
            try {
                $call();
                self::fail("no $kind");
            } catch (Conflict | NotFound | Invalid $error) {
                self::assertInstanceOf($kind, $error);
            }
        }
        self::assertArrayHasKey('service', $error->faults);
        self::assertNotNull($relay->enrolment('hal')->uri);
        $relay->forget('hal');
        $relay->forget('hal');
    }

    public function testCodesCountOnlyIfTheyAreAccepted(): void
    {
        $store = new MemoryStore();
        $relay = $this->enrolled('ida', $store);
        $path = '/user/ida/recovery-codes';
        try {
            $relay->call('POST', $path, []);
            self::fail('a password alone makes codes');
        } catch (ApprovalRequired $error) {
            $challenge = $error->challenge();
        }
        self::assertSame(0, $this->real->answer('approve', $challenge, $error->number(), 'ida'));
        $codes = $relay->call('POST', $path, ['approval' => $challenge])['codes'];
        $login = $relay->ask('ida');
        $this->assertRefused('not_signed', fn() => $relay->enter($login, $codes[0]));
        $trusting = $this->real->client($store, acceptCodes: true);
        $decision = $trusting->enter($trusting->ask('ida'), $codes[1]);
        self::assertTrue($decision->approved);
        self::assertSame('code', $decision->proof);
        $login = $relay->ask('ida');
        self::assertSame('open', $relay->enter($login, 'aaaa-aaaa-aaaa-aaaa')->state);
        $relay->cancel($login);
        self::assertSame('cancelled', $relay->wait($login)->reason);
    }

    public function testWebhooksArriveAndAreChecked(): void
    {
        $at = $this->real->directory;
        $port = RealRelay::freePort();
        $this->real->operate('website', 'add', 'news', '--webhook', "http://127.0.0.1:$port/twoefay");
        $store = new SQLiteStore("$at/news.db");
        $receiver = [PHP_BINARY, __DIR__ . '/webhook_server.php'];
        $receiver = [...$receiver, (string) $port, "$at/news.secret", "$at/news.db"];
        $inbox = Program::start($receiver, $at);
        self::assertSame('ready', $inbox->line());
        try {
            $relay = $this->real->client($store, 'news');
            $this->real->enrol($relay->register('lea')->uri, 'lea');
            $next = fn() => json_decode($inbox->line(), true);
            self::assertSame('device.bound', $next()['type']);
            $login = $relay->ask('lea');
            $challenge = $login->challenge;
            self::assertSame(0, $this->real->answer('approve', $challenge, $login->number, 'lea'));
            $event = $next();
            self::assertSame(['login.decided', $challenge], [$event['type'], $event['id']]);
            // As `wait` would have, and only once.
            self::assertTrue($relay->check($login, $event['data'])->approved);
            $this->assertRefused('request_used', fn() => $relay->wait($login));
            [$device] = array_keys($store->pins('lea'));
            $relay->call('DELETE', "/user/lea/devices/$device");
            self::assertSame('device.unbound', $next()['type']);
            self::assertSame([], $store->pins('lea'));
            self::assertTrue($relay->isEnrolled('lea'));
        } finally {
            $inbox->stop();
        }
    }

    public function testWaitSurvivesARestart(): void
    {
        $database = "{$this->real->directory}/kim.db";
        $relay = $this->enrolled('kim', new SQLiteStore($database));
        $login = $relay->ask('kim');
        $this->real->stop();
        $settings = [$this->real->origin, $this->real->directory, $database];
        $words = [...$settings, json_encode($login->toJson())];
        $waiter = Program::start([PHP_BINARY, __DIR__ . '/waiter.php', ...$words], $settings[1]);
        self::assertSame('waiting', $waiter->line());
        $this->real->start();
        $challenge = $login->challenge;
        self::assertSame(0, $this->real->answer('approve', $challenge, $login->number, 'kim'));
        self::assertSame(['approved', 0], $waiter->end());
    }

    public function testConnectionsAreNotSharedWithChildren(): void
    {
        $relay = $this->real->client(new MemoryStore());
        $relay->register('mia');
        $child = pcntl_fork();
        if ($child === 0) {
            $token = $relay->user('mia')['token'] ?? '';
            posix_kill(getmypid(), $token === '' ? SIGKILL : SIGTERM); // no test ends twice
        }
        pcntl_waitpid($child, $status);
        self::assertSame(SIGTERM, pcntl_wtermsig($status));
        self::assertSame([], $relay->factors('mia'));
    }
}
