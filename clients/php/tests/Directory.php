<?php

declare(strict_types=1);

namespace Twoefay\Tests;

/** Temporary directories. */
final class Directory
{
    public static function make(): string
    {
        $directory = sys_get_temp_dir() . '/twoefay-php-' . bin2hex(random_bytes(8));
        mkdir($directory, 0o700);
        return $directory;
    }

    public static function remove(string $directory): void
    {
        $entries = new \RecursiveIteratorIterator(
            new \RecursiveDirectoryIterator($directory, \FilesystemIterator::SKIP_DOTS),
            \RecursiveIteratorIterator::CHILD_FIRST,
        );
        foreach ($entries as $entry) {
            $isDirectory = $entry->isDir() && !$entry->isLink();
            $isDirectory ? rmdir($entry->getPathname()) : unlink($entry->getPathname());
        }
        rmdir($directory);
    }
}
