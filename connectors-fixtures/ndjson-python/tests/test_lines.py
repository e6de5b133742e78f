"""PYTHONPATH=src python3 -m unittest discover tests"""

import struct
import unittest

from batch import stores
from failure import Failure
from lines import lines
from tuples import elements

# As the crate foundationdb-tuple, which the host uses, writes them.
CASES = [
    ("00", "null"),
    ("26", "false"),
    ("27", "true"),
    ("14", "0"),
    ("15 01", "1"),
    ("13 fe", "-1"),
    ("16 0100", "256"),
    ("12 feff", "-256"),
    ("1c 7fffffffffffffff", "9223372036854775807"),
    ("0c 7fffffffffffffff", "-9223372036854775808"),
    ("1c ffffffffffffffff", "18446744073709551615"),
    ("1d 09 010000000000000000", "18446744073709551616"),
    ("0b f6 feffffffffffffffff", "-18446744073709551616"),
    ("21 bfe0000000000000", "0.5"),
    ("21 401fffffffffffff", "-0.5"),
    ("21 8000000000000000", "0.0"),
    ("21 7fffffffffffffff", "-0.0"),
    ("21 c415af1d78b58c40", "1e+20"),
    ("21 fe37e43c8800759c", "1e+300"),
    ("02 00", '""'),
    ("02 61 00ff 62 00", '"a\\u0000b"'),
    ("02 c3a9 22 0a 00", '"é\\"\\n"'),
    ("01 5b312c20325d 00", "[1, 2]"),
    ("01 302e31303030303030303030303030303030303030303031 00", "0.1000000000000000000001"),
]

KEY = [{"field": "id"}]
VALUES = [{"field": 'a "b"'}]


def store(key: str, values: str, document: bytes, flags: int = 0) -> bytes:
    parts = [bytes.fromhex(key), bytes.fromhex(values), document]
    return struct.pack("<4I", *map(len, parts), flags) + b"".join(parts)


class Tuples(unittest.TestCase):
    def test_elements_are_exact_json_texts_alone_and_in_a_row(self) -> None:
        for data, want in CASES:
            self.assertEqual(elements(bytes.fromhex(data)), [want], data)
        row = bytes.fromhex("".join(data for data, _ in CASES))
        self.assertEqual(elements(row), [want for _, want in CASES])

    def test_a_tuple_that_is_cut_off_or_unknown_is_an_error_with_its_place(self) -> None:
        for data in ["02 61", "21 00", "1c ff", "1d", "0b f6 00", "02 00ff", "ff", "05"]:
            with self.assertRaisesRegex(Failure, "malformed at byte", msg=data):
                elements(bytes.fromhex(data))


class Lines(unittest.TestCase):
    def test_a_line_is_the_document_on_one_line(self) -> None:
        batch = store("1501", "00", b'{"id":1}') + store("1502", "00", b'{\r\n"id": 2 }')
        binding = {"key": KEY, "values": VALUES, "document": "flow_document"}
        self.assertEqual(lines(binding, stores(batch)), b'{"id":1}\n{  "id": 2 }\n')

    def test_without_the_document_a_line_has_the_selected_fields(self) -> None:
        batch = store("1501", "00", b"{}") + store("1502", "27", b"{}")
        want = b'{"id":1,"a \\"b\\"":null}\n{"id":2,"a \\"b\\"":true}\n'
        self.assertEqual(lines({"key": KEY, "values": VALUES}, stores(batch)), want)
        with self.assertRaisesRegex(Failure, "2 values were stored"):
            lines({"key": KEY, "values": []}, stores(batch))

    def test_a_batch_that_is_cut_off_is_an_error(self) -> None:
        whole = store("1501", "00", b'{"id":1}')
        for length in range(1, len(whole)):
            with self.assertRaisesRegex(Failure, "malformed at byte 0"):
                stores(whole[:length])

    def test_flags_that_are_not_known_are_an_error(self) -> None:
        first = store("1501", "00", b"{}")
        for flags in (0, 1, 2, 3):
            self.assertEqual(len(stores(first + store("1502", "00", b"{}", flags))), 2)
        for flags in (4, 0xFF000000, 0xFFFFFFFF):
            want = f"malformed at byte {len(first)} .* flags are {flags},"
            with self.assertRaisesRegex(Failure, want):
                stores(first + store("1502", "00", b"{}", flags))


if __name__ == "__main__":
    unittest.main()
