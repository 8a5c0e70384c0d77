<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Base64Url;
use Twoefay\BindingError;
use Twoefay\Decision;
use Twoefay\Enrolment;
use Twoefay\Json;
use Twoefay\MemoryStore;
use Twoefay\Policy;
use Twoefay\ReceiptError;
use Twoefay\Relay;
use Twoefay\SQLiteStore;
use Twoefay\Store;

/** Phones in browsers: what their bindings and their approvals count. */
final class WebPhonesTest extends TestCase
{
    private const LOGIN = ['https://shop.example.com'];

    private WebPhone $phone;

    protected function setUp(): void
    {
        $this->phone = new WebPhone();
    }

    // MARK: Approvals

    public function testOwnersProofCountsAsPasscode(): void
    {
        $words = ['biometric' => 'passcode', 'passcode' => 'passcode', 'none' => 'none'];
        foreach ($words as $said => $counts) {
            $answer = $this->phone->proved(['uv' => $said]);
            self::assertSame($counts, $this->decide($answer)->userVerification);
            self::assertSame($counts, $this->decideByWebhook($answer)->userVerification);
        }
    }

    public function testPagesOwnWordDoesNotCount(): void
    {
        $decision = $this->decide($this->phone->approval());
        self::assertTrue($decision->approved);
        self::assertSame('none', $decision->userVerification);
        $other = (new WebPhone())->proved()['webauthn'];
        foreach ([$other, null, 'x', 7, [], [[]], (object) [], true] as $assertion) {
            $answer = $this->phone->approval() + ['webauthn' => $assertion];
            self::assertSame('none', $this->decide($answer)->userVerification);
            $reason = $this->reasonOf($answer, leastUserVerification: 'passcode');
            self::assertSame('user_verification', $reason);
        }
    }

    /** @dataProvider assertions */
    public function testAssertionIsCheckedWhole(string $counts, array $changes): void
    {
        $answer = $this->phone->approval();
        $answer['webauthn'] = $this->phone->assertion($answer['receipt'], ...$changes);
        $decision = $this->decide($answer);
        self::assertSame([true, $counts], [$decision->approved, $decision->userVerification]);
    }

    public static function assertions(): array
    {
        $client = fn(array $changes) => ['none', ['client' => $changes]];
        $origin = WebPhone::APP;
        $twice = '{"type":"webauthn.create","type":"webauthn.get"}';
        return [
            'right' => ['passcode', []],
            'no crossOrigin' => ['passcode', ['client' => ['crossOrigin' => null]]],
            'further client data' => ['passcode', ['client' => ['other' => [1]]]],
            'further flags and data' => ['passcode', ['flags' => 0x85, 'further' => str_repeat('x', 987)]],
            'type' => $client(['type' => 'webauthn.create']),
            'challenge' => $client(['challenge' => 'x']),
            'origin' => $client(['origin' => "$origin:8443"]),
            'slash' => $client(['origin' => "$origin/"]),
            'crossOrigin' => $client(['crossOrigin' => true]),
            'crossOrigin 0' => $client(['crossOrigin' => 0]),
            'topOrigin' => $client(['topOrigin' => $origin]),
            'type twice' => ['none', ['data' => $twice]],
            'no object' => ['none', ['data' => '[]']],
            'no JSON' => ['none', ['data' => 'x']],
            'rp' => ['none', ['rp' => 'phone.example.com']],
            'not present' => ['none', ['flags' => 4]],
            'not verified' => ['none', ['flags' => 1]],
            'long authenticator data' => ['none', ['further' => str_repeat('x', 988)]],
            'long client data' => ['none', ['client' => ['other' => str_repeat('x', 4096)]]],
        ];
    }

    public function testMembersOfAnAssertionAreStrictTexts(): void
    {
        $right = $this->phone->proved();
        foreach (['authenticator_data', 'client_data', 'signature'] as $name) {
            $text = $right['webauthn'][$name];
            $odd = ["$text=", "$text ", '', substr($text, 0, -4), strrev($text), null, 7, [$text]];
            foreach ($odd as $value) {
                $answer = array_replace_recursive($right, ['webauthn' => [$name => $value]]);
                $answer['webauthn'][$name] = $value;
                self::assertSame('none', $this->decide($answer)->userVerification, "$name: $text");
            }
            unset($answer['webauthn'][$name]);
            self::assertSame('none', $this->decide($answer)->userVerification);
        }
        $right['webauthn']['user_handle'] = 7; // further members are ignored
        self::assertSame('passcode', $this->decide($right)->userVerification);
    }

    public function testPhoneWithoutCredentialProvesNothing(): void
    {
        $record = $this->phone->jwk() + ['app' => WebPhone::APP];
        $decision = $this->decide($this->phone->proved(), $record);
        self::assertSame([true, 'none'], [$decision->approved, $decision->userVerification]);
    }

    public function testAgeCountsOnlyWithProof(): void
    {
        $answer = $this->phone->proved();
        self::assertTrue($this->decide($answer, longestVerificationAge: 3)->approved);
        self::assertSame('user_verification_age', $this->reasonOf($answer, longestVerificationAge: 2));
        unset($answer['webauthn']);
        self::assertSame('user_verification_age', $this->reasonOf($answer, longestVerificationAge: 600));
    }

    public function testBiometricIsNeverProved(): void
    {
        $reason = $this->reasonOf($this->phone->proved(), leastUserVerification: 'biometric');
        self::assertSame('user_verification', $reason);
    }

    public function testHighNeedsAnotherHostThanTheLogin(): void
    {
        $answer = $this->phone->proved();
        $origins = [
            [self::LOGIN, 'high'],
            [[], 'substantial'],
            [[WebPhone::APP], 'substantial'],
            [['https://shop.example.com', 'https://phone.example.com:8443'], 'substantial'],
            [['https://phone.example.com.'], 'substantial'],
        ];
        foreach ($origins as [$login, $counts]) {
            self::assertSame($counts, $this->decide($answer, loginOrigins: $login)->assurance);
            $reason = $this->reasonOf($answer, minAssurance: 'high', loginOrigins: $login);
            self::assertSame($counts === 'high' ? null : 'assurance', $reason);
            self::assertNull($this->reasonOf($answer, minAssurance: 'substantial', loginOrigins: $login));
        }
        $answer['assurance'] = 'low'; // only `high` changes
        self::assertSame('low', $this->decide($answer)->assurance);
    }

    // MARK: Native phones

    public function testNativePhoneIsAsBefore(): void
    {
        foreach (['biometric', 'passcode', 'none'] as $said) {
            $answer = $this->phone->proved(['uv' => $said]);
            $answer['webauthn']['signature'] = 'x';
            $decision = $this->decide($answer, $this->phone->jwk());
            self::assertSame([$said, 'high'], [$decision->userVerification, $decision->assurance]);
        }
    }

    public function testRowOfAnEarlierVersionCounts(): void
    {
        $directory = Directory::make();
        try {
            $store = new SQLiteStore("$directory/shop.db");
            $store->open('r1', WebPhone::TIME); // makes the tables
            $row = [hash('sha256', 'ada'), 'd1', json_encode($this->phone->jwk())];
            (new \PDO("sqlite:$directory/shop.db"))
                ->prepare('INSERT INTO twoefay_phone (name, device, jwk) VALUES (?, ?, ?)')
                ->execute($row);
            $relay = $this->relayOf($this->phone->approval(), $store);
            $decision = $relay->wait(WebPhone::login('high'), within: 0);
            self::assertSame('biometric', $decision->userVerification);
            self::assertSame('high', $decision->assurance);
        } finally {
            Directory::remove($directory);
        }
    }

    public function testRelaysWordIsAsBefore(): void
    {
        $answer = $this->phone->proved();
        $relay = $this->relayOf($answer, new MemoryStore(), allowUnpinned: true);
        $relay->store->open('r1', WebPhone::TIME);
        $decision = $relay->wait(WebPhone::login('high'), within: 0);
        self::assertSame([null, 'high'], [$decision->userVerification, $decision->assurance]);
    }

    // MARK: Bindings

    public function testRecordHasTheMembersOfAWebPhone(): void
    {
        $further = ['origin' => WebPhone::APP, 'jwk' => $this->phone->webauthn()['jwk'] + ['kid' => 'x']];
        $claims = ['app' => WebPhone::APP, 'webauthn' => $further + $this->phone->webauthn()];
        self::assertSame($this->phone->record(), $this->pinned($claims));
        $record = $this->phone->jwk() + ['app' => 'https://phone.example.com:8443'];
        self::assertSame($record, $this->pinned(['app' => 'https://phone.example.com:8443']));
        $ownMembers = ['jwk' => $this->phone->record()]; // those of the key itself are none
        self::assertSame($this->phone->jwk(), $this->pinned($ownMembers));
    }

    /** @dataProvider oddClaims */
    public function testOddClaimsAreRefused(mixed $app, array $webauthn = []): void
    {
        $claims = ['app' => $app];
        if ($webauthn !== []) {
            $claims['webauthn'] = $webauthn + $this->phone->webauthn();
        }
        self::assertSame('claims', $this->bindingFault($claims));
    }

    public static function oddClaims(): array
    {
        $apps = [
            null, 7, true, [], '', 'https://', 'https://:1', 'http://a.example', 'https://A.example',
            'https://a.example/', 'https://a.example#', 'https://u@a.example', 'https://a.example:',
            'https://a.example:123456', "https://a.example\n", 'https://[::1]', 'https://a.example?',
            'https://' . str_repeat('a', 121),
        ];
        $webauthns = [
            ['rp' => null], ['rp' => ''], ['rp' => 'xample.com'], ['rp' => 'phone.example.com:8443'],
            ['rp' => 'a.phone.example.com'], ['rp' => 'Phone.example.com'], ['id' => null], ['id' => ''],
            ['id' => 'aWQ='], ['id' => 'a'], ['id' => str_repeat('a', 257)], ['id' => 7],
            ['jwk' => null], ['jwk' => ['kty' => 'EC']],
        ];
        return [
            ...array_map(fn(mixed $app) => [$app], $apps),
            ...array_map(fn(array $changes) => [WebPhone::APP, $changes], $webauthns),
        ];
    }

    public function testCredentialNeedsAnApp(): void
    {
        self::assertSame('claims', $this->bindingFault(['webauthn' => $this->phone->webauthn()]));
        foreach ([null, 'x', [], true] as $odd) {
            $fault = $this->bindingFault(['app' => WebPhone::APP, 'webauthn' => $odd]);
            self::assertSame('claims', $fault);
        }
    }

    public function testLongestAppAndIdAreAccepted(): void
    {
        $host = str_repeat('a', 120);
        $id = str_repeat('a', 256);
        $webauthn = ['rp' => $host, 'id' => $id] + $this->phone->webauthn();
        $record = $this->pinned(['app' => "https://$host", 'webauthn' => $webauthn]);
        self::assertSame([$host, $id], [$record['webauthn']['rp'], $record['webauthn']['id']]);
        self::assertLessThanOrEqual(1000, strlen(Json::write($record))); // the column
    }

    public function testWebsiteChoosesItsPhones(): void
    {
        $web = ['app' => WebPhone::APP];
        $own = ['appOrigin' => WebPhone::APP];
        self::assertSame('phone', $this->bindingFault($web, phones: 'native'));
        self::assertSame('phone', $this->bindingFault([], phones: 'web'));
        self::assertNull($this->bindingFault([], phones: 'native'));
        self::assertNull($this->bindingFault($web, ...$own, phones: 'web'));
        self::assertNull($this->bindingFault([], ...$own)); // a native phone has no app
        foreach (['https://phone.example.com:8443', 'https://a.phone.example.com'] as $other) {
            self::assertSame('app', $this->bindingFault(['app' => $other], ...$own));
        }
        foreach (['', ':1', ':8080', '.', '.:1'] as $end) {
            self::assertSame('app', $this->bindingFault(['app' => "https://login.example.com$end"]));
        }
    }

    public function testFaultsHaveAnOrder(): void
    {
        $web = ['app' => 'https://login.example.com'];
        self::assertSame('token', $this->bindingFault($web + ['id_token' => 'x'], phones: 'native'));
        self::assertSame('phone', $this->bindingFault($web, phones: 'native'));
        $other = ['jwk' => (new WebPhone())->jwk()]; // another key than the relay reports
        self::assertSame('app', $this->bindingFault($web + $other));
        self::assertSame('key', $this->bindingFault(['app' => WebPhone::APP] + $other));
    }

    // MARK: Settings

    public function testCodeLeadsToTheChosenApp(): void
    {
        $end = '&k=' . Base64Url::encode(str_repeat('k', 32));
        $own = ['appOrigin' => 'https://phone.example.com:8443'];
        $start = 'relay=https%3A%2F%2Flogin.example.com&code=x';
        self::assertSame("twoefay://enrol?$start$end", $this->uri($start));
        self::assertSame("twoefay://enrol?$start&phones=web$end", $this->uri($start, phones: 'web'));
        self::assertSame("twoefay://enrol?$start&phones=native$end", $this->uri($start, phones: 'native'));
        $app = 'https://phone.example.com:8443/phone/#';
        self::assertSame("$app$start$end", $this->uri($start, ...$own));
        self::assertSame("$app$start&phones=web$end", $this->uri($start, ...$own, phones: 'web'));
    }

    public function testLongestCodeIsDrawn(): void
    {
        $activation = (object) [
            'uri' => 'twoefay://enrol?' . str_repeat('x', 1984), // 2000 characters in all
            'expires_at' => '2026-11-22T14:13:20Z',
        ];
        $own = 'https://' . str_repeat('a', 120);
        $policy = new Policy('https://a.example', 'shop', phones: 'native', appOrigin: $own);
        $made = Enrolment::read($policy, 't', $activation, str_repeat('k', 32));
        self::assertStringContainsString('<svg', $made->qr());
    }

    public function testOddSettingsAreRefused(): void
    {
        $odd = [
            ['phones' => ''], ['phones' => 'Web'], ['appOrigin' => ''], ['appOrigin' => 'phone.example.com'],
            ['appOrigin' => WebPhone::APP . '/'], ['appOrigin' => 'https://login.example.com'],
            ['appOrigin' => 'https://login.example.com.:8443'], ['loginOrigins' => ['shop.example.com']],
            ['loginOrigins' => ['https://shop.example.com/']], ['loginOrigins' => [null]],
        ];
        foreach ($odd as $settings) {
            try {
                (new FakeRelay())->client(null, null, ...$settings);
                self::fail(json_encode($settings) . ' is accepted');
            } catch (\InvalidArgumentException) {
                $this->addToAssertionCount(1);
            }
        }
    }

    // MARK: The website

    private function relayOf(array $answer, Store $store, mixed ...$policy): Relay
    {
        $fake = FakeRelay::always(fn() => FakeRelay::json($answer, 200));
        return $fake->client(new Clock(WebPhone::TIME), $store, ...$policy);
    }

    /** @param array<string, mixed>|null $record the pinned phone; null: this one */
    private function relay(array $answer, ?array $record, mixed ...$policy): Relay
    {
        $store = new MemoryStore();
        $store->addSecret('ada', 'k', WebPhone::TIME);
        $store->pin('ada', 'd1', $record ?? $this->phone->record(), 'k');
        $store->open('r1', WebPhone::TIME);
        return $this->relayOf($answer, $store, ...$policy);
    }

    private function decide(
        array $answer,
        ?array $record = null,
        ?string $minAssurance = null,
        mixed ...$policy,
    ): Decision {
        return $this->relay($answer, $record, ...$policy)->wait(WebPhone::login($minAssurance), within: 0);
    }

    private function decideByWebhook(array $answer): Decision
    {
        return $this->relay([], null)->check(WebPhone::login(), $answer);
    }

    private function reasonOf(array $answer, mixed ...$options): ?string
    {
        try {
            return $this->decide($answer, ...$options)->approved ? null : 'not approved';
        } catch (ReceiptError $error) {
            return $error->reason;
        }
    }

    /** @return array<string, mixed> the record that is pinned for a binding of these claims */
    private function pinned(array $claims, mixed ...$policy): array
    {
        $k = str_repeat('k', 32);
        $store = new MemoryStore();
        $store->addUser('ada', 't');
        $store->addSecret('ada', $k, WebPhone::TIME);
        $relay = $this->relayOf($this->phone->user($k, $claims), $store, ...$policy);
        try {
            self::assertSame(['d1'], $relay->confirm('ada'));
        } finally {
            self::assertSame($store->pins('ada') === [] ? [$k] : [], $store->secrets('ada', WebPhone::TIME));
        }
        return $store->pins('ada')['d1'];
    }

    private function bindingFault(array $claims, mixed ...$policy): ?string
    {
        try {
            $this->pinned($claims, ...$policy);
            return null;
        } catch (BindingError $error) {
            return $error->reason;
        }
    }

    private function uri(string $start, mixed ...$policy): string
    {
        $activation = ['uri' => "twoefay://enrol?$start", 'expires_at' => '2026-11-22T14:13:20Z'];
        $answer = FakeRelay::json(['token' => 't', 'activation' => $activation]);
        $clock = new Clock();
        $clock->bytes = str_repeat('k', 32);
        return (new FakeRelay($answer))->client($clock, null, ...$policy)->register('ada')->uri;
    }
}
