<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Login;
use Twoefay\Page;
use Twoefay\TwoefayError;

/** What the waiting page makes of an error. */
final class PageTest extends TestCase
{
    /**
     * @testWith ["not_found", 404, 403, true]
     *           ["already_decided", 409, 200, false]
     *           ["limited", 429, 429, false]
     */
    public function testPageOfARefusal(string $code, int $status, int $shown, bool $ended): void
    {
        $login = new Login('cccc', '47', 0, ['username' => 'ada', 'request' => 'r']);
        try {
            (new FakeRelay(FakeRelay::problem($code, $status)))->client()->enter($login, '123456');
            self::fail('the call was refused');
        } catch (TwoefayError $error) {
            $page = Page::ofError($error);
            self::assertSame([$shown, $ended], [$page->status, $page->ended]);
        }
    }
}
