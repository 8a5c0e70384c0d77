<?php

declare(strict_types=1);

// A website whose users need no password, with a relay that approves each login. SITE_AT is the
// directory of its files. With SITE_UNLOCKED, its sessions have no locks.

use Twoefay\Call;
use Twoefay\SecondFactor;
use Twoefay\SQLiteStore;
use Twoefay\Tests\Browser;
use Twoefay\Tests\FakeRelay;
use Twoefay\Tests\UnlockedSessions;

require __DIR__ . '/bootstrap.php';

$at = getenv('SITE_AT');
if (getenv('SITE_UNLOCKED') !== false) {
    session_set_save_handler(new UnlockedSessions("$at/sessions"), true);
}

/** The first click, while the second one waits for the relay. */
$click = function () use ($at): void {
    $browser = new Browser('http://' . $_SERVER['HTTP_HOST']);
    $browser->cookies = $_COOKIE;
    unlink("$at/click");
    $answer = $browser->post('/second-factor', $_POST);
    file_put_contents("$at/first", json_encode([$answer->status, $answer->all('set-cookie')]));
};

$fake = FakeRelay::always(function (Call $call) use ($at, $click) {
    if ($call->path === '/login') {
        return FakeRelay::json(['login' => 'verified', 'challenge' => 'cccc', 'number' => '{number}']);
    }
    if (is_file("$at/click")) {
        $click();
    }
    $success = ['login' => 'success', 'proof' => 'code', 'factor' => 'totp', 'challenge' => 'cccc'];
    return FakeRelay::json($success, 200);
});
$relay = $fake->client(store: new SQLiteStore("$at/site.db"), acceptCodes: true);
$factor = new SecondFactor($relay, function (string $username): void {
    $_SESSION['user'] = $username;
});
switch (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
    case '/login':
        isset($_GET['open']) && session_start();
        if (isset($_GET['printed'])) {
            echo 'printed too early';
            flush();
        }
        $factor->start('ada')->send();
        break;
    case '/second-factor':
        $factor->run();
        break;
    default:
        session_start(['read_and_close' => '1']);
        echo $_SESSION['user'] ?? 'nobody';
}
