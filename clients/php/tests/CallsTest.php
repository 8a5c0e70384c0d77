<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Answer;
use Twoefay\BindingError;
use Twoefay\Conflict;
use Twoefay\DatabaseStore;
use Twoefay\Limited;
use Twoefay\Login;
use Twoefay\MemoryStore;
use Twoefay\TwoefayError;
use Twoefay\Unavailable;
use Twoefay\Unreachable;

/** Retries, idempotency and limits, with a relay that is a function. */
final class CallsTest extends TestCase
{
    private const LOGIN = ['login' => 'verified', 'challenge' => 'cccc', 'number' => '{number}'];
    private const DENIED = '{"login": "failure", "reason": "denied"}';

    public function testLostAnswersAreRepeatedUnderOneKey(): void
    {
        $fake = new FakeRelay(
            new Unreachable('refused'),
            new Unreachable('lost'),
            new Answer(502, FakeRelay::HTML, '<h1>Bad gateway</h1>'),
            FakeRelay::problem('unavailable', 503, ['retry-after' => '1']),
            FakeRelay::json(self::LOGIN),
        );
        $clock = new Clock();
        $number = $fake->client($clock)->ask('ada')->number;
        self::assertSame($number, $fake->calls[0]->body['number']);
        self::assertCount(1, array_unique($fake->keys()));
        self::assertNotNull($fake->keys()[0]);
        $bodies = array_map(fn($call) => json_encode($call->body), $fake->calls);
        self::assertCount(1, array_unique($bodies));
        $sorted = $clock->pauses;
        sort($sorted);
        self::assertSame($sorted, $clock->pauses);
        self::assertGreaterThanOrEqual(1, $clock->pauses[3]);
    }

    public function testCallThatStillRunsIsRepeated(): void
    {
        $fake = new FakeRelay(
            FakeRelay::problem('conflict', 409, ['retry-after' => '1']),
            FakeRelay::json(self::LOGIN),
        );
        $clock = new Clock();
        $fake->client($clock)->ask('ada');
        self::assertSame([1.0], $clock->pauses);
        self::assertCount(1, array_unique($fake->keys()));
    }

    public function testTwoCallsHaveTwoKeys(): void
    {
        $fake = new FakeRelay(FakeRelay::json(self::LOGIN), FakeRelay::json(self::LOGIN));
        $relay = $fake->client();
        self::assertNotSame($relay->ask('ada')->request(), $relay->ask('ada')->request());
        self::assertCount(2, array_unique($fake->keys()));
    }

    public function testPatienceEnds(): void
    {
        $clock = new Clock();
        $fake = FakeRelay::always(fn() => new Unreachable('refused'));
        try {
            $fake->client($clock)->ask('ada');
            self::fail('the call has no answer');
        } catch (Unreachable) {
        }
        self::assertGreaterThan(0, array_sum($clock->pauses));
        self::assertLessThanOrEqual(3, array_sum($clock->pauses));
    }

    /** @dataProvider longPauses */
    public function testLongPauseIsToldAndNotSlept(Answer $answer, string $kind): void
    {
        $clock = new Clock();
        try {
            (new FakeRelay($answer))->client($clock)->ask('ada');
            self::fail('the call was refused');
        } catch (Limited | Unavailable $error) {
            self::assertInstanceOf($kind, $error);
            self::assertNotNull($error->retryAfter);
        }
        self::assertSame([], $clock->pauses);
    }

    public static function longPauses(): array
    {
        $limited = fn(string $pause) => ['retry-after' => $pause];
        return [
            [FakeRelay::problem('limited', 429, $limited('1')), Limited::class],
            [FakeRelay::problem('limited', 429, $limited('3600')), Limited::class],
            [FakeRelay::problem('unavailable', 503, $limited('30')), Unavailable::class],
        ];
    }

    /**
     * @testWith [""]
     *           ["soon"]
     *           ["-1"]
     *           ["1.5"]
     *           ["1\n"]
     *           ["9999999999999999999999999999999999999999"]
     *           ["\u0661"]
     */
    public function testOddPauseIsNone(string $wish): void
    {
        $answer = FakeRelay::problem('limited', 429, ['retry-after' => $wish]);
        try {
            (new FakeRelay($answer))->client()->ask('ada');
            self::fail('the call was refused');
        } catch (Limited $error) {
            self::assertNull($error->retryAfter);
        }
    }

    public function testConflictWithoutPauseIsFinal(): void
    {
        $fake = new FakeRelay(FakeRelay::problem('conflict', 409));
        try {
            $fake->client()->register('ada');
            self::fail('the call was refused');
        } catch (Conflict) {
            self::assertCount(1, $fake->calls);
        }
    }

    public function testAuthTakesNoKey(): void
    {
        $fake = new FakeRelay(
            FakeRelay::json('{"login": "wait"}', 200),
            FakeRelay::json(self::DENIED, 200),
        );
        self::assertSame('denied', $fake->client()->wait($this->login())->reason);
        self::assertSame([null, null], $fake->keys());
        $fields = array_map(fn($call) => $call->headers['prefer'], $fake->calls);
        self::assertSame(['wait=60', 'wait=60'], $fields);
    }

    public function testWaitingInAVisitorsRequestDoesNotSleepForALimit(): void
    {
        $clock = new Clock();
        $limited = FakeRelay::problem('limited', 429, ['retry-after' => '4']);
        try {
            (new FakeRelay($limited))->client($clock)->wait($this->login(), within: 10);
            self::fail('the call was refused');
        } catch (Limited) {
            self::assertSame([], $clock->pauses);
        }
    }

    /** @dataProvider faults */
    public function testHeldRequestThatIsLostIsRepeated(Answer|Unreachable $fault): void
    {
        foreach ([null, 120.0] as $within) {
            $clock = new Clock();
            $steps = [[58, $fault], [0, FakeRelay::json(self::DENIED, 200)]];
            $fake = self::held($clock, $steps);
            self::assertSame('denied', $fake->client($clock)->wait($this->login(), $within)->reason);
        }
    }

    /** @dataProvider faults */
    public function testWaitWithoutEndSurvivesALongOutage(Answer|Unreachable $fault): void
    {
        $clock = new Clock();
        $steps = array_fill(0, 40, [2, $fault]);
        $fake = self::held($clock, [...$steps, [0, FakeRelay::json(self::DENIED, 200)]]);
        self::assertSame('denied', $fake->client($clock)->wait($this->login())->reason);
    }

    public static function faults(): array
    {
        return [
            'lost' => [new Unreachable('lost')],
            'gateway' => [new Answer(504, FakeRelay::HTML, '<h1>Gateway timeout</h1>')],
            'unavailable' => [FakeRelay::problem('unavailable', 503)],
        ];
    }

    public function testWaitWithoutEndEndsWithTheChallenge(): void
    {
        $clock = new Clock();
        $begun = $clock->time;
        $fake = FakeRelay::always(fn() => new Unreachable('lost'));
        try {
            $fake->client($clock)->wait($this->login());
            self::fail('the call has no answer');
        } catch (Unreachable) {
        }
        self::assertGreaterThanOrEqual(590, $clock->time - $begun);
        self::assertLessThanOrEqual(604, $clock->time - $begun); // with the last call's patience
        $finals = [new Answer(404, FakeRelay::HTML, ''), FakeRelay::problem('not_found', 404)];
        foreach ($finals as $final) {
            $fake = new FakeRelay($final);
            try {
                $fake->client()->wait($this->login());
                self::fail('the call was refused');
            } catch (TwoefayError) {
                self::assertCount(1, $fake->calls);
            }
        }
    }

    public function testLostAnswerOfARegistrationLeadsToAnotherCode(): void
    {
        $user = ['token' => 'tttt', 'factors' => [], 'devices' => []];
        $activation = ['uri' => 'twoefay://enrol?code=abc', 'expires_at' => '2026-11-22T08:10:00Z'];
        $fake = new FakeRelay(
            FakeRelay::problem('shown_once', 409),
            FakeRelay::json($user, 200),
            FakeRelay::json($activation),
        );
        $store = new MemoryStore();
        self::assertNotNull($fake->client(store: $store)->register('ada')->uri);
        self::assertSame('tttt', $store->token('ada'));
        self::assertNotSame($fake->keys()[0], $fake->keys()[2]);
    }

    /**
     * @testWith [""]
     *           ["."]
     *           [".."]
     */
    public function testNameThatIsNoSegmentOfAPathIsRefusedHere(string $name): void
    {
        $relay = (new FakeRelay())->client();
        foreach (['factors', 'confirm', 'enrolment', 'register', 'ask', 'forget'] as $call) {
            try {
                $relay->{$call}($name);
                self::fail("$call takes the name");
            } catch (\InvalidArgumentException $error) {
                self::assertStringContainsString('segment', $error->getMessage());
            }
        }
    }

    public function testNameThatIsNotUtf8IsRefusedHere(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        (new FakeRelay())->client()->ask("ad\xe1");
    }

    public function testNameCannotLeadToAnotherRoute(): void
    {
        $fake = new FakeRelay(FakeRelay::json('{"token":"t","factors":[],"devices":[]}', 200));
        $fake->client()->factors('../health?x=%2e&y#z');
        self::assertSame('/user/..%2Fhealth%3Fx%3D%252e%26y%23z', $fake->calls[0]->path);
    }

    /** @dataProvider oddIds */
    public function testIdThatNoDatabaseTakesIsAnOddAnswer(string $id): void
    {
        $device = ['device' => $id, 'state' => 'active', 'binding' => 'x'];
        $user = ['token' => 'tttt', 'factors' => [], 'devices' => [$device]];
        $this->expectExceptionMessage('device is no id');
        (new FakeRelay(FakeRelay::json($user, 200)))->client()->confirm('ada');
    }

    public static function oddIds(): array
    {
        return [[''], ["a\0b"], ["a\n"], [str_repeat('a', 129)], ['../x'], ['é']];
    }

    public function testDeniedDecisionIsNoApproval(): void
    {
        $fake = new FakeRelay(FakeRelay::json(self::DENIED, 200));
        $decision = $fake->client()->wait($this->login(), within: 0);
        self::assertFalse($decision->approved);
        self::assertTrue($decision->ended);
    }

    public function testRecordSurvivesASession(): void
    {
        $details = [['label' => 'a', 'value' => 'b']];
        $fake = new FakeRelay(FakeRelay::json(self::LOGIN));
        $login = $fake->client()->ask('ada', ip: '192.0.2.7', details: $details);
        $kept = json_decode(json_encode($login->toJson()), true);
        self::assertEquals($login, Login::fromJson($kept));
        self::assertSame($details, $login->sent['details']);
    }

    /** That none of 200 numbers begins with 0 has a chance below 10^-9. */
    public function testNumberHasAsManyDigitsAsTheWebsiteRequires(): void
    {
        foreach ([1 => 2, 2 => 2, 4 => 4, 6 => 6] as $least => $digits) {
            $numbers = [];
            for ($i = 0; $i < 200; $i++) {
                $relay = (new FakeRelay(FakeRelay::json(self::LOGIN)))->client(leastDigits: $least);
                $numbers[] = $number = $relay->ask('ada')->number;
                self::assertMatchesRegularExpression("/\A[0-9]{{$digits}}\z/", $number);
            }
            self::assertGreaterThan(50, count(array_unique($numbers)));
            self::assertNotSame([], preg_grep('/\A0/', $numbers));
        }
    }

    /** @testWith [-1]
     *            [7]
     */
    public function testNumberOfDigitsThatNoPhoneTakesIsRefusedHere(int $digits): void
    {
        $this->expectExceptionMessage('leastDigits must be 0 to 6');
        (new FakeRelay())->client(leastDigits: $digits);
    }

    public function testUnknownAssuranceIsRefusedHere(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        (new FakeRelay())->client()->ask('ada', minAssurance: 'highest');
    }

    public function testSecretIsInNoDump(): void
    {
        $activation = ['uri' => 'twoefay://enrol?code=abc', 'expires_at' => '2026-11-22T08:10:00Z'];
        $body = ['token' => 'tttt', 'activation' => $activation];
        $made = (new FakeRelay(FakeRelay::json($body)))->client()->register('ada');
        self::assertStringContainsString('&k=', $made->uri);
        ob_start();
        var_dump($made);
        self::assertStringNotContainsString('&k=', ob_get_clean());
        self::assertStringContainsString('<svg', $made->qr());
    }

    public function testMethodMayHaveSmallLetters(): void
    {
        $fake = new FakeRelay(new Unreachable('lost'), FakeRelay::json('{}', 200));
        $fake->client()->call('post', '/register', []);
        self::assertCount(1, array_unique($fake->keys()));
        self::assertNotNull($fake->keys()[0]);
        self::assertSame('POST', $fake->calls[0]->method);
        $fake = FakeRelay::always(fn() => new Unreachable('lost'));
        try {
            $fake->client()->call('patch', '/user/ada', []);
            self::fail('the call has no answer');
        } catch (Unreachable) {
            self::assertCount(1, $fake->calls);
        }
    }

    /**
     * @testWith [""]
     *           [".evil.example/x"]
     *           ["@evil.example/"]
     */
    public function testPathCannotChangeTheHost(string $path): void
    {
        $this->expectExceptionMessage('must begin with "/"');
        (new FakeRelay())->client()->call('GET', $path);
    }

    public function testLongAnswerCostsTheStoreNoMoreThanAShortOne(): void
    {
        $file = sys_get_temp_dir() . '/twoefay-php-' . bin2hex(random_bytes(8)) . '.db';
        $count = 0;
        $store = new DatabaseStore(function () use ($file, &$count): \PDO {
            $count++;
            return new \PDO("sqlite:$file");
        });
        try {
            $store->addUser('ada', 't');
            $store->addSecret('ada', 'k', 1_795_334_400);
            $store->addSecret('bob', 'k2', 1_795_334_400);
            $store->pin('bob', 'd', [], 'k2'); // the tables are there
            $counts = [];
            foreach ([1, 100] as $devices) {
                $device = ['device' => 'd', 'state' => 'active', 'binding' => 0];
                $user = ['token' => 't', 'devices' => array_fill(0, $devices, $device)];
                $count = 0;
                try {
                    (new FakeRelay(FakeRelay::json($user, 200)))->client(store: $store)->confirm('ada');
                    self::fail('no key is proved');
                } catch (BindingError) {
                    $counts[] = $count;
                }
            }
            self::assertSame($counts[0], $counts[1]);
        } finally {
            unlink($file);
        }
    }

    public function testCodeIsInNoTrace(): void
    {
        $fake = FakeRelay::always(fn() => new Unreachable('lost'));
        $ignored = ini_set('zend.exception_ignore_args', '0');
        try {
            $fake->client()->enter($this->login(), 'the code');
            self::fail('the call has no answer');
        } catch (Unreachable $error) {
            foreach ($error->getTrace() as $frame) {
                self::assertNotContains('the code', $frame['args'] ?? []);
            }
        } finally {
            ini_set('zend.exception_ignore_args', $ignored);
        }
    }

    private function login(): Login
    {
        return new Login('cccc', '47', 1_795_334_400, ['username' => 'ada', 'request' => 'r']);
    }

    /** @param list<array{float, Answer|Unreachable}> $steps the times and the answers */
    private static function held(Clock $clock, array $steps): FakeRelay
    {
        return FakeRelay::always(function () use ($clock, &$steps) {
            [$seconds, $answer] = array_shift($steps);
            $clock->time += $seconds;
            return $answer;
        });
    }
}
