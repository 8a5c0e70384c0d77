<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\ApprovalRequired;
use Twoefay\Relay;
use Twoefay\SQLiteStore;

/** The example sites: a browser's requests, a real relay, and a real phone. */
final class SitesTest extends TestCase
{
    private const ADA = ['username' => 'ada', 'password' => 'correct horse'];
    private const BOB = ['username' => 'bob', 'password' => 'battery staple'];
    private const CLEO = ['username' => 'cleo', 'password' => 'open sesame'];

    private RealRelay $real;
    private string $directory;
    private Program $server;
    private Browser $browser;
    private SQLiteStore $store;
    private string $origin;

    protected function setUp(): void
    {
        $this->real = RealRelay::shared();
        $site = $this->getProvidedData()[0] ?? 'site';
        if ($site === 'psr15' && !stream_resolve_include_path('GuzzleHttp/Psr7/autoload.php')) {
            self::markTestSkipped('no package for PSR-7 (php-guzzlehttp-psr7)');
        }
        $name = 'site-' . bin2hex(random_bytes(4)); // a website of its own has users of its own
        $this->real->operate('website', 'add', $name);
        $this->directory = $at = Directory::make();
        mkdir("$at/relay");
        mkdir("$at/sessions");
        $files = ['relay/ca.pem' => 'relay/ca.pem', "$name.pem" => 'shop.pem', "$name.key" => 'shop.key'];
        foreach ($files as $from => $to) {
            copy("{$this->real->directory}/$from", "$at/$to");
        }
        chmod("$at/shop.key", 0o600);
        $this->store = new SQLiteStore("$at/shop.db");
        $this->start(__DIR__ . "/../examples/$site/index.php");
    }

    protected function tearDown(): void
    {
        if (isset($this->server)) {
            $this->server->stop();
            Directory::remove($this->directory);
        }
    }

    private function start(string $router): void
    {
        $port = RealRelay::freePort();
        $this->origin = "http://localhost:$port";
        $settings = [
            'SHOP_FILES' => $this->directory,
            'SHOP_RELAY' => $this->real->origin,
            'PHP_CLI_SERVER_WORKERS' => '4', // a second click is answered beside the first
        ];
        $options = ['-d', "session.save_path=$this->directory/sessions", '-d', 'display_errors=0'];
        $options = [...$options, '-d', 'log_errors=1', '-d', 'error_reporting=-1'];
        $words = [PHP_BINARY, ...$options, '-S', "localhost:$port", $router];
        $command = 'exec ' . implode(' ', array_map(escapeshellarg(...), $words)) . ' 2>&1';
        $this->server = Program::start(['sh', '-c', $command], $this->directory, $settings);
        $this->server->waitFor('started', "$this->directory/site.log");
        $this->browser = new Browser($this->origin);
    }

    public static function sites(): array
    {
        return [['site'], ['psr15']];
    }

    /** The first login shows a QR code, which a phone reads. */
    private function bind(array $form, string $phone): void
    {
        $answer = $this->browser->post('/login', $form);
        self::assertSame(200, $answer->status, $answer->body);
        self::assertSame('no-store', $answer->field('cache-control'));
        $uri = QrCodeTest::read(QrCodeTest::svgAsImage($answer->body));
        $this->real->enrol($uri, $phone);
    }

    private function phone(string $user): string
    {
        return "$user-" . basename($this->directory);
    }

    /** The challenge of the login that is open in the browser's session. */
    private function challenge(): string
    {
        $file = "$this->directory/sessions/sess_{$this->browser->cookies['PHPSESSID']}";
        preg_match('/"challenge";s:\d+:"([^"]+)"/', file_get_contents($file), $found);
        return $found[1];
    }

    /** @return array{string, array<string, string>} the number and the form of the waiting page */
    private function waitingPage(): array
    {
        $answer = $this->browser->get('/second-factor');
        self::assertSame(200, $answer->status, $answer->body);
        $policy = $answer->field('content-security-policy');
        self::assertStringContainsString("default-src 'none'", $policy);
        preg_match("/script-src 'nonce-([^']+)'/", $policy, $nonce);
        preg_match_all('/<(?:script|style)[^>]* nonce="([^"]+)"/', $answer->body, $nonces);
        self::assertSame([$nonce[1], $nonce[1]], $nonces[1]);
        self::assertDoesNotMatchRegularExpression('/ (src|href|srcset|style|on[a-z]+)=/', $answer->body);
        self::assertSame(1, preg_match('/class="number">([0-9]+)</', $answer->body, $number));
        return [$number[1], $answer->form()];
    }

    /** @return array<string, string> the form of a login that the phone has approved */
    private function approved(array $user): array
    {
        $answer = $this->browser->post('/login', $user);
        self::assertSame([303, '/second-factor'], [$answer->status, $answer->field('location')]);
        [$number, $form] = $this->waitingPage();
        $phone = $this->phone($user['username']);
        self::assertSame(0, $this->real->answer('approve', $this->challenge(), $number, $phone));
        return $form;
    }

    private function timesLetIn(): int
    {
        return substr_count(file_get_contents("$this->directory/site.log"), 'is let in');
    }

    /** @dataProvider sites */
    public function testLogIn(string $site): void
    {
        $this->browser->post('/login', self::ADA); // the user closes the page, and gets another code
        $this->bind(self::ADA, $this->phone('ada'));
        $wrong = ['password' => 'wrong'] + self::ADA;
        self::assertSame(403, $this->browser->post('/login', $wrong)->status);
        self::assertSame(303, $this->browser->post('/login', self::ADA)->status);
        [$number, $form] = $this->waitingPage();
        $before = $this->browser->cookies;
        self::assertStringNotContainsString('Welcome', $this->browser->get('/')->body);
        $state = fn() => json_decode($this->browser->get('/second-factor?state')->body, true);
        self::assertSame(['ended' => false], $state());
        self::assertSame(200, $this->browser->post('/second-factor', $form)->status); // too early
        $phone = $this->phone('ada');
        self::assertSame(0, $this->real->answer('approve', $this->challenge(), $number, $phone));
        self::assertSame(['ended' => true], $state());
        self::assertStringNotContainsString('Welcome', $this->browser->get('/')->body);
        foreach ([[], ['form_token' => 'x'], ['form_token' => ['x']]] as $forged) {
            self::assertSame(403, $this->browser->post('/second-factor', $forged)->status);
        }
        self::assertSame($before, $this->browser->cookies);
        $answer = $this->browser->post('/second-factor', $form);
        self::assertSame([303, '/'], [$answer->status, $answer->field('location')]);
        self::assertNotSame($before, $this->browser->cookies);
        $cookie = $answer->field('set-cookie');
        foreach (['secure', 'HttpOnly', 'SameSite=Lax'] as $attribute) {
            self::assertStringContainsStringIgnoringCase("; $attribute", $cookie);
        }
        self::assertStringContainsString('Welcome, ada', $this->browser->get('/')->body);
        $log = file_get_contents("$this->directory/site.log");
        self::assertDoesNotMatchRegularExpression('/Warning|Notice|Deprecated|Fatal/', $log);
    }

    /** @dataProvider sites */
    public function testTwoClicksLogInOnce(string $site): void
    {
        $this->bind(self::ADA, $this->phone('ada'));
        $form = $this->approved(self::ADA);
        $answers = $this->browser->postAtOnce(4, '/second-factor', $form);
        foreach ($answers as $answer) { // a browser takes any of them, and drops the others
            self::assertSame([303, '/'], [$answer->status, $answer->field('location')], $answer->body);
            $home = $this->browser->after($answer)->get('/');
            self::assertStringContainsString('Welcome, ada', $home->body);
        }
        $cookies = array_map(fn($answer) => explode(';', $answer->field('set-cookie'))[0], $answers);
        self::assertCount(1, array_unique($cookies));
        self::assertSame(1, $this->timesLetIn());
    }

    public function testLateClickDoesNotLogOut(): void
    {
        $this->bind(self::ADA, $this->phone('ada'));
        $form = $this->approved(self::ADA);
        $before = clone $this->browser;
        $this->browser->post('/second-factor', $form);
        $forged = ['form_token' => 'x'] + $form;
        foreach ([$form, $forged] as $again) {
            $this->browser->post('/second-factor', $again);
            self::assertStringContainsString('Welcome, ada', $this->browser->get('/')->body);
        }
        // Somebody with the former cookie alone gets nothing.
        self::assertStringNotContainsString('Welcome', $before->get('/')->body);
        self::assertNull($before->post('/second-factor', $forged)->field('set-cookie'));
        // After a logout, a click of before leads to no session.
        $this->browser->post('/logout', ['x' => 'x']);
        $answer = $before->post('/second-factor', $form);
        self::assertSame([303, null], [$answer->status, $answer->field('set-cookie')]);
        self::assertStringNotContainsString('Welcome', $before->get('/')->body);
    }

    public function testPageWithoutALoginSendsNoCookie(): void
    {
        $this->browser->cookies = ['PHPSESSID' => 'chosenbysomebodyelse'];
        $answers = [
            $this->browser->get('/second-factor'),
            $this->browser->get('/second-factor?state'),
            $this->browser->post('/second-factor', ['form_token' => '']),
        ];
        foreach ($answers as $answer) {
            self::assertSame([], $answer->all('set-cookie'));
        }
        self::assertSame('{"ended":true}', $answers[1]->body);
        self::assertSame([200, 403], [$answers[0]->status, $answers[2]->status]);
        $this->browser->cookies = ['PHPSESSID' => '../../x'];
        self::assertSame(200, $this->browser->get('/second-factor')->status);
    }

    public function testChosenSessionIsNotLoggedIn(): void
    {
        $this->bind(self::ADA, $this->phone('ada'));
        $this->browser->cookies = ['PHPSESSID' => 'chosenbysomebodyelse'];
        $form = $this->approved(self::ADA);
        self::assertNotSame('chosenbysomebodyelse', $this->browser->cookies['PHPSESSID']);
        $this->browser->post('/second-factor', $form);
        $other = new Browser($this->origin);
        $other->cookies = ['PHPSESSID' => 'chosenbysomebodyelse'];
        self::assertStringNotContainsString('Welcome', $other->get('/')->body);
    }

    /** @dataProvider sites */
    public function testUnboundPhoneMakesNoRoomForAnother(string $site): void
    {
        $this->bind(self::CLEO, $this->phone('cleo'));
        self::assertSame(303, $this->browser->post('/login', self::CLEO)->status);
        [$device] = array_keys($this->store->pins('cleo'));
        // As the relay's webhook does.
        $this->store->unpinByToken($this->store->token('cleo'), $device);
        $answer = $this->browser->post('/login', self::CLEO);
        self::assertSame(403, $answer->status);
        self::assertStringContainsString('help desk', $answer->body);
        self::assertStringNotContainsString('<svg', $answer->body);
    }

    /** @dataProvider sites */
    public function testDenied(string $site): void
    {
        $this->bind(self::BOB, $this->phone('bob'));
        $this->browser->post('/login', self::BOB);
        [, $form] = $this->waitingPage();
        $phone = $this->phone('bob');
        self::assertSame(0, $this->real->answer('deny', $this->challenge(), null, $phone));
        $answer = $this->browser->post('/second-factor', $form);
        self::assertSame(403, $answer->status);
        self::assertStringContainsString('not approved', $answer->body);
        self::assertStringNotContainsString('Welcome', $this->browser->get('/')->body);
    }

    public function testCodeLogsInWhereCodesAreAccepted(): void
    {
        $this->bind(self::ADA, $this->phone('ada'));
        $code = $this->recoveryCode();
        $this->server->stop();
        $this->start(__DIR__ . '/codes_site.php');
        $this->browser->post('/login', ['username' => 'ada', 'target' => '/?account']);
        $page = $this->browser->get('/second-factor');
        self::assertStringContainsString('name="code"', $page->body);
        $enter = function (mixed $code) use (&$page): Received {
            return $this->browser->post('/second-factor', ['code' => $code] + $page->form());
        };
        $answers = [
            [['x'], 200, 'Enter this number'],
            ["\xff", 400, 'not accepted'],
            [str_repeat('1', 65), 400, 'not accepted'],
        ];
        foreach ($answers as [$given, $status, $text]) {
            $answer = $enter($given);
            self::assertSame($status, $answer->status);
            self::assertStringContainsString($text, $answer->body);
        }
        $answer = $enter(" $code ");
        self::assertSame([303, '/?account'], [$answer->status, $answer->field('location')]);
        self::assertStringContainsString('Welcome, ada', $this->browser->get('/')->body);

        $this->browser->post('/login', ['username' => 'ada', 'target' => '//evil.example']);
        $page = $this->browser->get('/second-factor');
        $answer = $enter('aaaa-aaaa-aaaa-aaaa');
        self::assertSame(200, $answer->status);
        self::assertStringContainsString('This code is wrong.', $answer->body);
        $answer = $enter('aaaa-aaaa-aaaa-aaaa'); // too soon
        self::assertSame(429, $answer->status);
        self::assertStringContainsString('Too many attempts', $answer->body);
        self::assertGreaterThan(0, (int) $answer->field('retry-after'));
    }

    private function recoveryCode(): string
    {
        $at = $this->directory;
        $files = ["$at/relay/ca.pem", "$at/shop.pem", "$at/shop.key"];
        $relay = new Relay($this->real->origin, ...[...$files, $this->store]);
        self::assertCount(1, $relay->confirm('ada'));
        $path = '/user/ada/recovery-codes';
        try {
            $relay->call('POST', $path, []);
            self::fail('a password alone makes codes');
        } catch (ApprovalRequired $error) {
            $challenge = $error->challenge();
        }
        $phone = $this->phone('ada');
        self::assertSame(0, $this->real->answer('approve', $challenge, $error->number(), $phone));
        return $relay->call('POST', $path, ['approval' => $challenge])['codes'][0];
    }

    public function testRealBrowserLogsIn(): void
    {
        $chromium = Chromium::start($this->directory);
        try {
            $this->bind(self::ADA, $this->phone('ada'));
            $chromium->open("$this->origin/");
            $chromium->submit("document.querySelector('[name=username]').value = 'ada';"
                . "document.querySelector('[name=password]').value = 'correct horse';"
                . "document.querySelector('form').submit();");
            $number = $chromium->value("document.querySelector('.number').textContent");
            $sessions = glob("$this->directory/sessions/sess_*");
            $this->browser->cookies = ['PHPSESSID' => substr(basename(end($sessions)), 5)];
            $phone = $this->phone('ada');
            self::assertCount(1, $sessions);
            $chromium->expectLoad(); // the page's own script goes on
            self::assertSame(0, $this->real->answer('approve', $this->challenge(), $number, $phone));
            $chromium->waitForLoad();
            self::assertSame('Welcome, ada', $chromium->value('document.body.textContent'));
            self::assertSame([], $chromium->complaints());
        } finally {
            $chromium->stop();
        }
    }
}
