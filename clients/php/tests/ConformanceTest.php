<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Answer;
use Twoefay\ApprovalRequired;
use Twoefay\Base64Url;
use Twoefay\CheckError;
use Twoefay\Decision;
use Twoefay\Enrolment;
use Twoefay\Factor;
use Twoefay\Json;
use Twoefay\Login;
use Twoefay\MemoryStore;
use Twoefay\Refused;
use Twoefay\Relay;
use Twoefay\TwoefayError;
use Twoefay\Unreachable;
use Twoefay\Webhooks;

/** The cases of clients/conformance, which all languages run: good relays and lying ones. */
final class ConformanceTest extends TestCase
{
    private array $case;
    private array $given;
    private FakeRelay $fake;
    private MemoryStore $store;
    private Clock $clock;
    private Relay $relay;

    public function testSuiteIsThere(): void
    {
        self::assertGreaterThanOrEqual(1135, count(self::document()['cases']));
    }

    /** @dataProvider cases */
    public function testCase(array $case): void
    {
        $this->setUpCase($case);
        $outcome = $this->outcome($case['call']);
        $expected = $case['expected'];
        if (isset($expected['requests'])) {
            $sent = $this->sent();
            self::assertTrue(self::isAsExpected($expected['requests'], $sent), json_encode($sent));
            unset($expected['requests']);
        }
        foreach ($expected as $name => $value) { // no others matter
            $isSame = self::isAsExpected($value, $outcome[$name] ?? null);
            self::assertTrue($isSame, "$name of " . json_encode($outcome));
        }
    }

    public static function cases(): iterable
    {
        foreach (self::document()['cases'] as $case) {
            yield $case['name'] => [$case];
        }
    }

    private static function document(): array
    {
        static $document = null;
        $file = getenv('TWOEFAY_CASES') ?: __DIR__ . '/../../conformance/cases.json';
        return $document ??= json_decode(file_get_contents($file), true, 64, JSON_THROW_ON_ERROR);
    }

    private function setUpCase(array $case): void
    {
        $this->case = $case;
        $this->given = $case['given'];
        $this->store = new MemoryStore();
        $this->clock = new Clock($case['clock']);
        $this->fake = FakeRelay::always($this->answer(...));
    }

    private function makeClient(): void
    {
        $settings = $this->case['website'] + self::document()['defaults'];
        $this->relay = $this->fake->client(
            $this->clock,
            $this->store,
            origin: $settings['origin'],
            website: $settings['name'],
            displayName: $settings['display_name'],
            leastUserVerification: $settings['least_user_verification'],
            longestVerificationAge: $settings['longest_verification_age'],
            leastDigits: $settings['least_digits'],
            allowUnpinned: $settings['allow_unpinned'],
            acceptCodes: $settings['accept_codes'],
            phones: $settings['phones'],
            appOrigin: $settings['app_origin'],
            loginOrigins: $settings['login_origins'],
        );
    }

    private function answer(): Answer
    {
        $number = count($this->fake->calls);
        if (isset($this->case['answer'])) {
            $answer = $this->case['answer'];
        } else {
            self::assertLessThanOrEqual(count($this->case['answers']), $number, 'one too many');
            $answer = $this->case['answers'][$number - 1];
        }
        if ($answer === null) {
            throw new Unreachable('lost');
        }
        return new Answer($answer['status'], $answer['headers'], $answer['body']);
    }

    private function outcome(string $call): array
    {
        try {
            $this->makeClient();
            return $this->{'run' . ucfirst($call)}();
        } catch (CheckError $error) {
            $facts = ['outcome' => 'refused', 'error' => $error::WORD, 'reason' => $error->reason];
            return $facts + ['field' => $error->field];
        } catch (Refused $error) {
            $facts = ['outcome' => 'error', 'error' => $error::WORD, 'code' => $error->problemCode];
            $isApproval = $error instanceof ApprovalRequired;
            return $facts + [
                'retry_after' => $error->retryAfter,
                'challenge' => $isApproval ? $error->challenge() : null,
                'number' => $isApproval ? $error->number() : null,
            ];
        } catch (TwoefayError $error) {
            return ['outcome' => 'error', 'error' => $error::WORD];
        } catch (\InvalidArgumentException) {
            return ['outcome' => 'unusable'];
        }
    }

    // MARK: The store

    /** Stores what the website has of a user: pinned phones, the token, and open secrets. */
    private function keep(string $username, array $known): void
    {
        foreach ($known['pinned'] ?? [] as $device => $jwk) {
            $this->store->addSecret($username, '', $this->case['clock']);
            self::assertTrue($this->store->pin($username, (string) $device, $jwk, ''));
        }
        if (isset($known['token'])) {
            $this->store->addUser($username, $known['token']);
        }
        foreach ($known['k'] ?? [] as $k) {
            $this->store->addSecret($username, Base64Url::decode($k), $this->case['clock']);
        }
    }

    private function keepAll(string $username): void
    {
        foreach ($this->given['others'] ?? [] as $other => $known) {
            $this->keep((string) $other, $known);
        }
        $this->keep($username, $this->given);
    }

    private function assertOthersAreAsBefore(): void
    {
        foreach ($this->given['others'] ?? [] as $other => $known) {
            self::assertSame($known['token'], $this->store->token((string) $other));
            self::assertEquals($known['pinned'], $this->store->pins((string) $other));
            $open = $this->store->secrets((string) $other, $this->case['clock']);
            self::assertSame($known['k'], array_map(Base64Url::encode(...), $open));
        }
    }

    // MARK: Calls

    private function runDecide(): array
    {
        return $this->decided(fn(Login $login) => $this->relay->wait($login, within: 0));
    }

    private function runEnter(): array
    {
        $code = $this->given['code'];
        return $this->decided(fn(Login $login) => $this->relay->enter($login, $code));
    }

    /** @param \Closure(Login): Decision $decide */
    private function decided(\Closure $decide): array
    {
        $login = Login::fromJson($this->given['login']);
        $this->keepAll('ada');
        if ($this->given['open']) {
            $this->store->open($login->request(), $login->askedAt);
        }
        $decision = null;
        try {
            $decision = $decide($login);
        } finally {
            // A login lets in once: the request is spent exactly if the decision is an approval.
            $isOpen = $this->given['open'] && !$decision?->approved;
            self::assertSame($isOpen, $this->store->spend($login->request()));
            $this->assertOthersAreAsBefore();
        }
        return [
            'outcome' => $decision->state,
            'reason' => $decision->reason,
            'device' => $decision->device,
            'proof' => $decision->proof,
            'user_verification' => $decision->userVerification,
            'assurance' => $decision->assurance,
        ];
    }

    private function runConfirm(): array
    {
        $username = $this->given['username'];
        $this->keepAll($username);
        $this->relay->confirm($username);
        $this->assertOthersAreAsBefore();
        return ['outcome' => 'pinned', 'pinned' => $this->store->pins($username)];
    }

    private function runAsk(): array
    {
        $names = ['user_agent' => 'userAgent'];
        $arguments = [];
        foreach ($this->given as $name => $value) {
            $arguments[$names[$name] ?? $name] = $value;
        }
        $login = $this->relay->ask(...$arguments);
        $sent = end($this->fake->calls)->body;
        self::assertSame($login->sent, array_intersect_key($sent, $login->sent));
        self::assertMatchesRegularExpression('/\A[0-9a-f]{32}\z/', $sent['request']);
        unset($sent['request']);
        return ['outcome' => 'asked', 'sends' => $sent, 'number' => $login->number];
    }

    private function runRegister(): array
    {
        $this->clock->bytes = Base64Url::decode($this->given['k']);
        return $this->enrolled($this->relay->register($this->given['username']));
    }

    private function runEnrolment(): array
    {
        $username = $this->given['username'];
        $this->keep($username, ['token' => $this->given['token']]);
        $this->clock->bytes = Base64Url::decode($this->given['k']);
        return $this->enrolled($this->relay->enrolment($username, $this->given['approval'] ?? null));
    }

    private function enrolled(Enrolment $made): array
    {
        self::assertStringNotContainsString($this->given['k'], json_encode($this->fake->calls));
        $username = $this->given['username'];
        $secrets = $this->store->secrets($username, $this->case['clock']);
        self::assertSame($made->uri === null, $secrets === []);
        self::assertSame($made->token, $this->store->token($username));
        return [
            'outcome' => 'enrolment',
            'uri' => $made->uri,
            'sent_to' => $made->sentTo,
            'awaits' => $made->awaits,
        ];
    }

    private function runUnbind(): array
    {
        $username = $this->given['username'];
        $this->keepAll($username);
        $outcome = $this->outcome('unbindPhone'); // the store counts after an error, too
        $this->assertOthersAreAsBefore();
        return $outcome + [
            'pinned' => $this->store->pins($username),
            'enrolled' => $this->relay->isEnrolled($username),
        ];
    }

    private function runUnbindPhone(): array
    {
        $this->relay->unbind($this->given['username'], $this->given['device']);
        return ['outcome' => 'done'];
    }

    private function runFactors(): array
    {
        $found = $this->relay->factors($this->given['username']);
        $kinds = array_map(fn(Factor $factor) => $factor->kind, $found);
        return ['outcome' => 'factors', 'kinds' => $kinds];
    }

    private function runWebhook(): array
    {
        $inbox = new Webhooks($this->given['secrets'], null, $this->clock);
        $event = $inbox->verify($this->given['headers'], $this->given['body']);
        return ['outcome' => 'event', 'type' => $event->type, 'id' => $event->id];
    }

    // MARK: What was sent

    /** The requests, with their keys numbered by first use. */
    private function sent(): array
    {
        $bodies = [];
        $sent = [];
        foreach ($this->fake->calls as $call) {
            $bytes = $call->body === null ? null : Json::write($call->body);
            $key = $call->headers['idempotency-key'] ?? null;
            if ($key !== null) {
                self::assertSame($bodies["=$key"] ??= $bytes, $bytes);
            }
            $body = $bytes === null ? null : json_decode($bytes, true);
            if ($call->path === '/login') {
                unset($body['request']);
            }
            $number = $key === null ? null : array_search("=$key", array_keys($bodies), true) + 1;
            $sent[] = [
                'method' => $call->method,
                'path' => $call->path,
                'body' => $body,
                'key' => $number,
            ];
        }
        return $sent;
    }

    /** Equality; `{2 digits}` stands for a number that the client chose. */
    private static function isAsExpected(mixed $expected, mixed $actual): bool
    {
        if (is_array($expected) && is_array($actual)) {
            if (count($expected) !== count($actual)) {
                return false;
            }
            foreach ($expected as $name => $value) {
                if (!array_key_exists($name, $actual) || !self::isAsExpected($value, $actual[$name])) {
                    return false;
                }
            }
            return true;
        }
        if (is_string($expected) && preg_match('/\A\{([26]) digits\}\z/', $expected, $found) === 1) {
            return is_string($actual) && preg_match("/\A[0-9]{{$found[1]}}\z/", $actual) === 1;
        }
        return $expected === $actual;
    }
}
