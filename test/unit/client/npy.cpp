#include "client/npy.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>

namespace {

using coaccel::client::make_npy;
using coaccel::client::parse_npy;
using coaccel::client::tensor;
using namespace std::string_literals;

/// A file of the format with this version.
std::string npy_file(const std::string& header, const std::string& data, char version = 1)
{
    std::string all = "\x93NUMPY"s + version + '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
        all += static_cast<char>(header.size() >> (8 * i) & 0xff);
    return all + header + data;
}

template <class... T>
std::string bytes_of(T... values)
{
    std::string all;
    const auto add = [&all](auto v) {
        char raw[sizeof v];
        std::memcpy(raw, &v, sizeof v);
        all.append(raw, sizeof v);
    };
    (add(values), ...);
    return all;
}

std::string npy_error(const std::string& content)
{
    const auto parsed = parse_npy(content);
    REQUIRE(!parsed);
    CHECK(parsed.error() == coaccel::errc::file_invalid);
    return parsed.error().message();
}

} // namespace

TEST_SUITE_BEGIN("client npy");

TEST_CASE("a file as NumPy writes it")
{
    // numpy.save of numpy.array([[1, 2, 3], [4, 5, 6]], dtype=numpy.float32)
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    header.append(117 - header.size(), ' ');
    header += '\n';
    const auto content = npy_file(header, bytes_of(1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f));
    CHECK(content.size() == 128 + 24);
    CHECK(parse_npy(content).value() == tensor{"", "FP32", {2, 3}, bytes_of(1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f)});
    CHECK(parse_npy(npy_file(header, bytes_of(1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f), 2)).has_value());
    CHECK(parse_npy(npy_file(header, bytes_of(1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f), 3)).has_value());
}

TEST_CASE("every type is written and read again")
{
    for (const char* type : {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16",
                             "FP32", "FP64", "COMPLEX64", "COMPLEX128"})
        for (const std::vector<std::uint64_t>& shape :
             {std::vector<std::uint64_t>{}, {0}, {1}, {7}, {2, 3}, {2, 0, 3}, {1, 2, 3, 4}}) {
            tensor t{"", type, shape, {}};
            t.data.resize(*coaccel::client::tensor_bytes(type, shape));
            for (std::size_t i = 0; i < t.data.size(); ++i)
                t.data[i] = static_cast<char>(i * 37);
            const auto content = make_npy(t).value();
            CHECK((content.size() - t.data.size()) % 64 == 0);
            CHECK(parse_npy(content).value() == t);
        }
    for (const char* type : {"BF16", "FP8_E4M3", "BYTES", "", "FP32 "})
        CHECK(make_npy({"", type, {}, {}}).error() == coaccel::errc::invalid_argument);
}

TEST_CASE("numbers in big-endian order are converted")
{
    CHECK(parse_npy(npy_file("{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", "\x01\x02\x03\x04"))
              .value()
              .data == "\x02\x01\x04\x03");
    CHECK(parse_npy(npy_file("{'descr': '>c8', 'fortran_order': False, 'shape': ()}", "12345678")).value().data ==
          "43218765");
    CHECK(parse_npy(npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", "ab")).value().data == "ab");
}

TEST_CASE("the header may be written in other ways")
{
    const auto two = bytes_of(std::int32_t(1), std::int32_t(2));
    for (const char* header : {"{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<i4\"}",
                               "  {'shape' : ( 2 , 1 ) , 'fortran_order' : False , 'descr' : '=i4' , }  \n",
                               "{'descr': '<i4', 'fortran_order': True, 'shape': (2,)}"})
        CHECK_MESSAGE(parse_npy(npy_file(header, two)).has_value(), header);
}

TEST_CASE("what is no array of numbers is refused with the reason")
{
    CHECK(npy_error("") == "it is no .npy file: it does not begin with \\x93NUMPY and a version");
    CHECK(npy_error("PK\x03\x04 an archive of arrays") ==
          "it is no .npy file: it does not begin with \\x93NUMPY and a version");
    CHECK(npy_error(npy_file("{}", "", 4)) == "version 4 of the .npy format is unknown");
    CHECK(npy_error(npy_file("{}", "")) == "the header '{}' has no type of numbers, order and shape");
    CHECK(npy_error("\x93NUMPY\x01\0\xff\xff{}"s) ==
          "the header should have 65535 bytes; the file has 2 after its length");
    CHECK(npy_error("\x93NUMPY\x02\0\xff\xff\xff\xff{}"s) ==
          "the header should have 4294967295 bytes; the file has 2 after its length");
    CHECK(npy_error(npy_file("{'descr': '|O', 'fortran_order': False, 'shape': ()}", "12345678")) ==
          "the elements have the type '|O'; it must be a number, such as '<f4'");
    CHECK(npy_error(npy_file("{'descr': '<U3', 'fortran_order': False, 'shape': ()}", "")) ==
          "the elements have the type '<U3'; it must be a number, such as '<f4'");
    CHECK(npy_error(npy_file("{'descr': '', 'fortran_order': False, 'shape': ()}", "")) ==
          "the elements have the type ''; it must be a number, such as '<f4'");
    CHECK(npy_error(npy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1)}", "1234")) ==
          "the array is in Fortran order; numpy.ascontiguousarray makes another one");
    CHECK(npy_error(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234")) ==
          "the shape [2] of FP32 needs 8 bytes; the file has 4");
    CHECK(npy_error(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "")) ==
          "the shape [4294967296, 4294967296] of FP32 needs too many bytes; the file has 0");
    std::string many;
    for (int i = 0; i < 33; ++i)
        many += "1,";
    for (const auto& bad :
         {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"s, "{'descr': '<f4', 'shape': ()}"s,
          "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}"s, "{'descr': '<f4', 'fortran_order': False, 'shape': 3}"s,
          "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"s,
          "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}"s,
          "{'descr': '<f4', 'fortran_order': False, 'shape': (1"s, "{'descr"s,
          "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}"s,
          "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"s,
          "{'descr': '<f4', 'fortran_order': False, 'shape': (" + many + ")}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': 1}"s,
          "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x"s}) {
        CAPTURE(bad);
        CHECK(npy_error(npy_file(bad, "1234")).find("has no type of numbers, order and shape") != std::string::npos);
    }
    CHECK(npy_error(npy_file("\x1b[31m\n", "")).find('\x1b') == std::string::npos);
}

TEST_CASE("damaged files are refused, or are arrays that fit their size")
{
    const auto good = make_npy({"", "INT16", {3, 5}, std::string(30, 'x')}).value();
    for (std::size_t n = 0; n < good.size(); ++n)
        CHECK(!parse_npy(std::string_view(good).substr(0, n)).has_value());
    std::mt19937 random(7);
    int accepted = 0;
    for (int round = 0; round < 50000; ++round) {
        auto bad = good;
        for (auto n = 1 + random() % 4; n > 0; --n)
            switch (const auto at = random() % bad.size(); random() % 3) {
            case 0: bad[at] = static_cast<char>(random()); break;
            case 1: bad.insert(at, 1, "(),'0123456789:{}<>"[random() % 19]); break;
            default: bad.erase(at, 1 + random() % 3);
            }
        const auto parsed = parse_npy(bad);
        if (!parsed)
            continue;
        ++accepted;
        CHECK(parsed.value().data.size() ==
              coaccel::client::tensor_bytes(parsed.value().datatype, parsed.value().shape));
    }
    CHECK(accepted > 0);
}

TEST_SUITE_END();
