<?php

declare(strict_types=1);

use Twoefay\Event;
use Twoefay\Texts;
use Twoefay\Webhooks;

$inbox = new Webhooks([file_get_contents(files() . '/shop.secret')], relay()->store);
$act = fn(Event $event) => error_log('shop: ' . Texts::oneLine($event->type));
http_response_code($inbox->receive(getallheaders(), file_get_contents('php://input'), $act));
