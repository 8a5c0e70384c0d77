<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Answer;
use Twoefay\ApprovalRequired;
use Twoefay\Base64Url;
use Twoefay\CheckError;
use Twoefay\Factor;
use Twoefay\Login;
use Twoefay\MemoryStore;
use Twoefay\Refused;
use Twoefay\Relay;
use Twoefay\TwoefayError;
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
        self::assertGreaterThanOrEqual(251, count(self::document()['cases']));
    }

    /** @dataProvider cases */
    public function testCase(array $case): void
    {
        $this->setUpCase($case);
        $outcome = $this->outcome();
        foreach ($case['expected'] as $name => $value) { // no others matter
            $found = $outcome[$name] ?? null;
            if (is_array($value) && is_array($found)) {
                ksort($value); // the members of an object have no order
                ksort($found);
            }
            self::assertSame($value, $found, "$name of " . json_encode($outcome));
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
        $answer = $case['answer'] ?? ['status' => 500, 'headers' => [], 'body' => ''];
        $this->fake = FakeRelay::always(
            static fn() => new Answer($answer['status'], $answer['headers'], $answer['body'])
        );
        $settings = $case['website'] + self::document()['defaults'];
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
        );
    }

    private function outcome(): array
    {
        try {
            return $this->{'run' . ucfirst($this->case['call'])}();
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
        }
    }

    private function pin(string $username): void
    {
        foreach ($this->given['pinned'] as $device => $jwk) {
            $this->store->addSecret($username, '', $this->case['clock']);
            self::assertTrue($this->store->pin($username, (string) $device, $jwk, ''));
        }
    }

    private function runDecide(): array
    {
        $login = Login::fromJson($this->given['login']);
        $this->pin('ada');
        if ($this->given['open']) {
            $this->store->open($login->request(), $login->askedAt);
        }
        $decision = $this->relay->wait($login, within: 0);
        // A login lets in once: the request is spent exactly if the decision is an approval.
        self::assertSame($decision->approved, !$this->store->spend($login->request()));
        return [
            'outcome' => $decision->state,
            'reason' => $decision->reason,
            'device' => $decision->device,
            'proof' => $decision->proof,
        ];
    }

    private function runConfirm(): array
    {
        $username = $this->given['username'];
        $this->pin($username);
        $this->store->addUser($username, $this->given['token']);
        foreach ($this->given['k'] as $k) {
            $this->store->addSecret($username, Base64Url::decode($k), $this->case['clock']);
        }
        $this->relay->confirm($username);
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
        self::assertCount(1, $this->fake->calls);
        $sent = $this->fake->calls[0]->body;
        self::assertSame($login->sent, array_intersect_key($sent, $login->sent));
        self::assertMatchesRegularExpression('/\A[0-9a-f]{32}\z/', $sent['request']);
        unset($sent['request']);
        return ['outcome' => 'asked', 'sends' => $sent, 'number' => $login->number];
    }

    private function runRegister(): array
    {
        $this->clock->bytes = Base64Url::decode($this->given['k']);
        $made = $this->relay->register($this->given['username']);
        self::assertStringNotContainsString($this->given['k'], json_encode($this->fake->calls));
        $secrets = $this->store->secrets('ada', $this->case['clock']);
        self::assertSame($made->uri === null, $secrets === []);
        return [
            'outcome' => 'enrolment',
            'uri' => $made->uri,
            'sent_to' => $made->sentTo,
            'awaits' => $made->awaits,
        ];
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
}
