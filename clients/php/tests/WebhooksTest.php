<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Event;
use Twoefay\MemoryStore;
use Twoefay\Webhooks;

/** What is done with an event. The conformance suite has the signatures, also published ones. */
final class WebhooksTest extends TestCase
{
    private const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    private const NOW = 1_795_334_400;

    public function testRepetitionActsOnce(): void
    {
        $acted = [];
        $inbox = $this->inbox(new MemoryStore());
        $body = self::event('login.decided', ['token' => 't', 'name' => 'Zoë']);
        $act = function (Event $event) use (&$acted): void {
            $acted[] = $event;
        };
        self::assertSame(204, $inbox->receive(self::signed($body), $body, $act));
        self::assertSame(204, $inbox->receive(self::signed($body), $body, $act));
        self::assertCount(1, $acted);
        self::assertSame(['token' => 't', 'name' => 'Zoë'], $acted[0]->data);
    }

    public function testFailedActRunsAgain(): void
    {
        $count = 0;
        $inbox = $this->inbox(new MemoryStore());
        $body = self::event('login.decided', []);
        $act = function () use (&$count): void {
            if (++$count === 1) {
                throw new \RuntimeException('the database is away');
            }
        };
        try {
            $inbox->receive(self::signed($body), $body, $act);
            self::fail('the failure is hidden');
        } catch (\RuntimeException) {
        }
        self::assertSame(204, $inbox->receive(self::signed($body), $body, $act));
        self::assertSame(2, $count);
    }

    public function testForgedWebhookActsNever(): void
    {
        $body = self::event('login.decided', []);
        $act = fn() => self::fail('a forged webhook acts');
        $headers = ['webhook-id' => 'x'] + self::signed($body);
        self::assertSame(400, $this->inbox(new MemoryStore())->receive($headers, $body, $act));
    }

    public function testHeadersOfPsr7AreRead(): void
    {
        $body = self::event('login.decided', []);
        $headers = array_map(fn(string $value) => [$value], self::signed($body));
        self::assertSame('msg_1', $this->inbox()->verify($headers, $body)->id);
        $headers['webhook-id'][] = 'msg_2';
        self::assertSame(400, $this->inbox()->receive($headers, $body, fn() => null));
    }

    public function testUnboundPhoneIsUnpinned(): void
    {
        $store = new MemoryStore();
        foreach (['ada', 'bob'] as $name) {
            $store->addUser($name, "t-$name");
            $store->addSecret($name, 'k', self::NOW);
            $store->pin($name, 'd1', ['kty' => 'EC'], 'k');
        }
        foreach (['t-nobody', 't-ada'] as $token) {
            $body = self::event('device.unbound', ['token' => $token, 'device' => 'd1']);
            $inbox = $this->inbox($store);
            self::assertSame(204, $inbox->receive(self::signed($body, $token), $body, fn() => null));
            self::assertSame($token === 't-ada', $store->pins('ada') === []);
        }
        // The relay signs webhooks: it must not turn a user into one who never had a phone.
        self::assertTrue($store->wasPinned('ada'));
        self::assertNotSame([], $store->pins('bob'));
    }

    /**
     * @testWith [""]
     *           ["whsec_"]
     *           ["whsec_c2hvcnQ="]
     *           ["whsec_***"]
     */
    public function testWeakSecretIsRefused(string $secret): void
    {
        $this->expectException(\InvalidArgumentException::class);
        new Webhooks([$secret]);
    }

    public function testReceiverWithoutSecretIsRefused(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        new Webhooks([]);
    }

    private function inbox(?MemoryStore $store = null): Webhooks
    {
        return new Webhooks([self::SECRET . "\n"], $store, new Clock(self::NOW));
    }

    private static function signed(string $body, string $id = 'msg_1'): array
    {
        $key = base64_decode(substr(self::SECRET, 6));
        $tag = base64_encode(hash_hmac('sha256', "$id." . self::NOW . ".$body", $key, true));
        return [
            'webhook-id' => $id,
            'webhook-timestamp' => (string) self::NOW,
            'webhook-signature' => "v1,$tag",
        ];
    }

    private static function event(string $type, array $data): string
    {
        $timestamp = '2026-11-22T08:00:00.000Z';
        $event = ['type' => $type, 'timestamp' => $timestamp, 'data' => (object) $data];
        return json_encode($event);
    }
}
