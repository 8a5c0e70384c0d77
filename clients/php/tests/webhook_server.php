<?php

declare(strict_types=1);

// Receives webhooks, and prints each event as a line of JSON. Arguments: the port, the file of the
// secret, and the database of the store.

require __DIR__ . '/bootstrap.php';

[, $port, $secret, $database] = $argv;
$store = new Twoefay\SQLiteStore($database);
$server = stream_socket_server("tcp://127.0.0.1:$port");
echo "ready\n";
while ($connection = stream_socket_accept($server, -1)) {
    $headers = [];
    fgets($connection);
    while (trim($line = (string) fgets($connection)) !== '') {
        [$name, $value] = explode(':', $line, 2);
        $headers[$name] = trim($value);
    }
    $length = (int) (array_change_key_case($headers)['content-length'] ?? 0);
    $body = $length > 0 ? stream_get_contents($connection, $length) : '';
    $inbox = new Twoefay\Webhooks([file_get_contents($secret)], $store);
    $lines = '';
    $status = $inbox->receive($headers, $body, function (Twoefay\Event $event) use (&$lines): void {
        $lines .= json_encode($event) . "\n";
    });
    fwrite($connection, "HTTP/1.1 $status OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    fclose($connection);
    echo $lines ?: "status $status\n";
}
