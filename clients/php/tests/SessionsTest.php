<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;

/** The sessions of SecondFactor on websites that use theirs in other ways than the examples. */
final class SessionsTest extends TestCase
{
    private string $directory;
    private Program $server;
    private Browser $browser;

    protected function setUp(): void
    {
        $this->directory = Directory::make();
        mkdir("$this->directory/sessions");
    }

    protected function tearDown(): void
    {
        $this->server->stop();
        Directory::remove($this->directory);
    }

    /** @param array<string, string> $settings */
    private function start(array $settings = []): void
    {
        $port = RealRelay::freePort();
        $settings += ['SITE_AT' => $this->directory, 'PHP_CLI_SERVER_WORKERS' => '4'];
        $options = ["session.save_path=$this->directory/sessions", 'session.use_strict_mode=0'];
        $options = [...$options, 'output_buffering=0', 'display_errors=0', 'log_errors=1'];
        $words = [PHP_BINARY];
        foreach ($options as $option) {
            array_push($words, '-d', $option);
        }
        array_push($words, '-S', "localhost:$port", __DIR__ . '/fake_site.php');
        $command = 'exec ' . implode(' ', array_map(escapeshellarg(...), $words)) . ' 2>&1';
        $this->server = Program::start(['sh', '-c', $command], $this->directory, $settings);
        $this->server->waitFor('started', "$this->directory/site.log");
        $this->browser = new Browser("http://localhost:$port");
    }

    /** @return array<string, string> the form of the waiting page */
    private function form(): array
    {
        self::assertSame(303, $this->browser->get('/login')->status);
        return $this->browser->get('/second-factor')->form();
    }

    public function testCookieIsStrictIfTheWebsiteHasASessionOpen(): void
    {
        $this->start();
        $answer = $this->browser->get('/login?open');
        self::assertSame(303, $answer->status);
        [$cookie] = $answer->all('set-cookie');
        self::assertCount(1, $answer->all('set-cookie'));
        foreach (['secure', 'HttpOnly', 'SameSite=Lax'] as $attribute) {
            self::assertStringContainsStringIgnoringCase("; $attribute", $cookie);
        }
        self::assertCount(1, glob("$this->directory/sessions/*")); // the former one is deleted
        $page = $this->browser->get('/second-factor')->body;
        self::assertMatchesRegularExpression('/class="number">[0-9]{2}</', $page);
    }

    public function testNoLoginWaitsInASessionThatSomebodyChose(): void
    {
        $this->start();
        $this->browser->cookies = ['PHPSESSID' => 'chosenbysomebodyelse'];
        $this->browser->get('/login?open&printed');
        $sessions = array_map(file_get_contents(...), glob("$this->directory/sessions/*"));
        self::assertStringNotContainsString('challenge', implode($sessions));
        $log = file_get_contents("$this->directory/site.log");
        self::assertStringContainsString('no session can be started', $log);
    }

    public function testFormerIdLeadsNowhereLater(): void
    {
        $this->start();
        $form = $this->form();
        $before = clone $this->browser;
        self::assertSame(303, $this->browser->post('/second-factor', $form)->status);
        $file = "$this->directory/sessions/sess_{$before->cookies['PHPSESSID']}";
        $count = 0;
        $earlier = fn(array $at) => sprintf('s:2:"at";d:%.4F;', $at[1] - 6);
        $left = file_get_contents($file);
        $left = preg_replace_callback('/s:2:"at";d:([0-9.]+);/', $earlier, $left, -1, $count);
        self::assertSame(1, $count);
        file_put_contents($file, $left);
        $answer = $before->post('/second-factor', $form);
        self::assertSame([303, []], [$answer->status, $answer->all('set-cookie')]);
        self::assertSame('nobody', $before->get('/')->body);
        self::assertSame('ada', $this->browser->get('/')->body);
    }

    public function testSecondClickWithoutLocksLogsInToo(): void
    {
        $this->start(['SITE_UNLOCKED' => '1']);
        $form = $this->form();
        touch("$this->directory/click");
        $second = $this->browser->post('/second-factor', $form);
        [$status, $cookies] = json_decode(file_get_contents("$this->directory/first"), true);
        self::assertSame(303, $status);
        self::assertSame([303, '/'], [$second->status, $second->field('location')], $second->body);
        self::assertSame($cookies, $second->all('set-cookie'));
        self::assertSame('ada', $this->browser->get('/')->body);
        $log = file_get_contents("$this->directory/site.log");
        self::assertStringNotContainsString('not proved', $log);
    }
}
