<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Base64Url;
use Twoefay\Login;
use Twoefay\MemoryStore;
use Twoefay\OddAnswer;
use Twoefay\ReceiptError;

/** Lies that only PHP would read as the truth: objects as lists, and numbers as texts. */
final class TrapsTest extends TestCase
{
    private const SENT = [
        'username' => 'ada',
        'request' => 'r1',
        'details' => [['label' => 'amount', 'value' => '1']],
    ];

    /** @dataProvider contexts */
    public function testContextIsComparedByType(string $details, ?string $reason): void
    {
        $shown = '{"v":1,"website":"shop","display_name":"Shop","username":"ada","request":"r1",'
            . '"number_digits":2,"details":' . $details . '}';
        self::assertSame($reason, self::reasonOf($shown));
    }

    public static function contexts(): array
    {
        return [
            'right' => ['[{"label":"amount","value":"1"}]', null],
            'other order' => ['[{"value":"1","label":"amount"}]', null],
            'object as list' => ['{"0":{"label":"amount","value":"1"}}', 'field'],
            'list as object' => ['[["amount","1"]]', 'field'],
            'number as text' => ['[{"label":"amount","value":1}]', 'field'],
            'true as text' => ['[{"label":"amount","value":true}]', 'field'],
            'same number' => ['[{"label":"amount","value":"1.0"}]', 'field'],
            'same exponent' => ['[{"label":"amount","value":"1e0"}]', 'field'],
            'space' => ['[{"label":"amount","value":" 1"}]', 'field'],
            'null' => ['null', 'field'],
            'empty list' => ['[]', 'field'],
            'empty object' => ['{}', 'field'],
            'name twice' => ['[{"label":"amount","value":"2","value":"1"}]', 'context'],
        ];
    }

    /** @dataProvider claims */
    public function testClaimsAreComparedByType(array $claims, string $reason): void
    {
        $shown = '{"v":1,"website":"shop","display_name":"Shop","username":"ada","request":"r1",'
            . '"number_digits":2,"details":[{"label":"amount","value":"1"}]}';
        self::assertSame($reason, self::reasonOf($shown, $claims));
    }

    public static function claims(): array
    {
        return [
            [['v' => 1.5], 'claims'],
            [['v' => '1'], 'claims'],
            [['number' => '47.0'], 'number'],
            [['number' => "47\n"], 'number'],
            [['number' => ' 47'], 'number'],
            [['number' => null], 'claims'],
            [['uv' => 0], 'claims'],
            [['iat' => '1'], 'claims'],
            [['uv_age' => 1.5], 'claims'],
        ];
    }

    public function testObjectIsNoListOfFactors(): void
    {
        $user = '{"token":"t","factors":{},"devices":{}}';
        foreach (['factors', 'confirm'] as $call) {
            try {
                FakeRelay::always(fn() => FakeRelay::json($user, 200))->client()->{$call}('ada');
                self::fail('an object reads as an empty list');
            } catch (OddAnswer $error) {
                self::assertStringContainsString('no list', $error->getMessage());
            }
        }
    }

    public function testFieldOfTheRelayDoesNotWriteTheLog(): void
    {
        $shown = '{"v":1,"website":"shop","display_name":"Shop","username":"ada","request":"r1",'
            . '"number_digits":2,"details":[{"label":"amount","value":"1"}],"x\nadmin is let in":1}';
        self::assertSame('field', self::reasonOf($shown, [], $error));
        self::assertSame("x\nadmin is let in", $error->field);
        self::assertSame('field: x?admin is let in', $error->getMessage());
    }

    /** The reason for which a receipt over this context is refused; null if it is accepted. */
    private static function reasonOf(string $shown, array $claims = [], ?ReceiptError &$error = null): ?string
    {
        $kind = ['private_key_type' => OPENSSL_KEYTYPE_EC, 'curve_name' => 'prime256v1'];
        $key = openssl_pkey_new($kind);
        $claims += [
            'v' => 1,
            'aud' => 'https://login.example.com:8080#shop',
            'challenge' => 'cccc',
            'decision' => 'approve',
            'nonce' => 'n',
            'context' => Base64Url::encode(hash('sha256', $shown, true)),
            'uv' => 'none',
            'iat' => 1,
            'request' => 'r1',
            'number' => '47',
        ];
        $header = ['alg' => 'ES256', 'typ' => 'twoefay-decision+jwt', 'kid' => 'd1'];
        $receipt = KeysTest::sign($key, json_encode($header), json_encode($claims));
        $answer = [
            'login' => 'success',
            'proof' => 'signed',
            'challenge' => 'cccc',
            'device' => 'd1',
            'context' => Base64Url::encode($shown),
            'receipt' => $receipt,
        ];
        $store = new MemoryStore();
        $store->addSecret('ada', 'k', 0);
        $store->pin('ada', 'd1', KeysTest::jwk($key), 'k');
        $store->open('r1', 0);
        $clock = new Clock();
        $login = new Login('cccc', '47', $clock->now(), self::SENT);
        try {
            $relay = (new FakeRelay(FakeRelay::json($answer, 200)))->client($clock, $store);
            return $relay->wait($login, within: 0)->approved ? null : 'not approved';
        } catch (ReceiptError $error) {
            return $error->reason;
        }
    }
}
