// Writes valid initial inputs for a fuzzer: seeds FOLDER, which gets a folder for each target.
#include "seeds.hpp"

#include "worker/protocol/wire.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace fuzz {
namespace {

using namespace coaccel;
using namespace coaccel::worker;

constexpr int kinds_of_request = 19;
/// The id of a request in an entry that is used for the first time; the next entry has the next id.
constexpr std::uint64_t first_id = std::uint64_t(1) << 32;

template <class Step>
script& add(script& s, Step what)
{
    return s.put(static_cast<std::uint8_t>(what));
}

bytes ended(std::uint64_t id, const error_code& ec)
{
    encoder out;
    out.put(message_type::ended);
    out.put(id);
    out.put_error(ec);
    return {out.record().begin(), out.record().end()};
}

std::vector<script> reply_seeds()
{
    std::vector<script> seeds;
    // The first record is the adoption, and large requests take several records.
    for (int n = 0; n < kinds_of_request; ++n) {
        script& s = seeds.emplace_back().put(static_cast<std::uint8_t>(n % 3 * 2));
        add(s, reply_step::right_answer);
        add(s, reply_step::submit).put(static_cast<std::uint8_t>(n));
        for (int i = 0; i < 4; ++i)
            add(s, reply_step::right_answer);
    }

    encoder out;
    script& held = seeds.emplace_back().put(std::uint8_t(is_dropped));
    add(held, reply_step::right_answer);
    for (const std::uint8_t n : {6, 0, 7, 8})
        add(held, reply_step::submit).put(n);
    add(held, reply_step::release).put(std::uint8_t(1));
    for (int i = 0; i < 8; ++i)
        add(held, reply_step::right_answer);

    // A plan is loaded, run with small and with large arguments, and unloaded.
    script& plan = seeds.emplace_back().put(std::uint8_t(is_dropped));
    add(plan, reply_step::right_answer);
    for (const std::uint8_t n : {15, 16, 17, 16, 18})
        add(plan, reply_step::submit).put(n);
    for (int i = 0; i < 12; ++i)
        add(plan, reply_step::right_answer);

    script& fails = seeds.emplace_back().put(std::uint8_t(dies));
    out.put_error(make_error_with_message(errc::invalid_launch, "no"));
    add(fails, reply_step::right_answer);
    add(fails, reply_step::submit).put(std::uint8_t(1));
    add(fails, reply_step::answer).put_record(out.record());
    add(fails, reply_step::submit).put(std::uint8_t(0));
    add(fails, reply_step::record).put_record(ended(2 * first_id, errc::out_of_memory));

    script& lacks = seeds.emplace_back().put(std::uint8_t(0));
    out.clear();
    out.put(message_type::unsupported);
    out.put(first_id + 1);
    out.put(std::uint32_t(0));
    add(lacks, reply_step::submit).put(std::uint8_t(1));
    add(lacks, reply_step::submit).put(std::uint8_t(0));
    add(lacks, reply_step::record).put_record(out.record());

    script& repeats = seeds.emplace_back().put(std::uint8_t(0));
    add(repeats, reply_step::submit).put(std::uint8_t(1));
    add(repeats, reply_step::submit).put(std::uint8_t(0));
    for (int i = 0; i < 2; ++i)
        add(repeats, reply_step::record).put_record(ended(first_id + 1, {}));
    script& strays = seeds.emplace_back().put(std::uint8_t(0));
    add(strays, reply_step::submit).put(std::uint8_t(0));
    add(strays, reply_step::record).put_record(ended(first_id + 1, {}));

    script& loses = seeds.emplace_back().put(std::uint8_t(greets));
    out.clear();
    out.put(message_type::ready);
    out.put_text("host");
    put_hardware(out, {.name = "CPU", .multiprocessors = 1});
    out.put(exporting::no);
    loses.put_record(out.record());
    add(loses, reply_step::submit).put(std::uint8_t(5));
    out.clear();
    out.put(message_type::lost);
    out.put_error(errc::context_lost);
    add(loses, reply_step::record).put_record(out.record());

    script& odd = seeds.emplace_back().put(std::uint8_t(0));
    add(odd, reply_step::scribble).put(std::uint32_t(4096)).put_record(out.record());
    add(odd, reply_step::gauge).put(~std::uint64_t(0));
    add(odd, reply_step::requests_taken).put(std::uint64_t(8));
    add(odd, reply_step::position).put(std::uint64_t(64));
    add(odd, reply_step::idle);
    return seeds;
}

std::vector<script> ring_seeds()
{
    const auto write = [](script& s, std::uint16_t length) {
        add(s, ring_step::write).put(length).put(static_cast<std::uint8_t>(length));
    };
    std::vector<script> seeds(3);
    for (int i = 0; i < 12; ++i) {
        write(seeds[0], static_cast<std::uint16_t>(500 + i));
        add(seeds[0], i % 4 == 3 ? ring_step::sleep : ring_step::read);
    }
    for (int i = 0; i < 6; ++i)
        write(seeds[1], 1000);
    add(seeds[1], ring_step::read);
    add(seeds[1], ring_step::taken).put(std::uint8_t(0)).put(std::int16_t(8));
    write(seeds[1], 1000);
    write(seeds[2], 100);
    add(seeds[2], ring_step::sleeping).put(std::uint32_t(1));
    add(seeds[2], ring_step::length).put(std::uint16_t(0)).put(std::uint32_t(90));
    add(seeds[2], ring_step::read);
    add(seeds[2], ring_step::poke).put(std::uint16_t(0)).put_record(std::as_bytes(std::span("something")));
    add(seeds[2], ring_step::written).put(std::uint8_t(1)).put(std::uint64_t(4104));
    add(seeds[2], ring_step::read);
    return seeds;
}

bool save(const std::filesystem::path& folder, const std::vector<script>& seeds)
{
    std::filesystem::create_directories(folder);
    int n = 0;
    for (const script& s : seeds) {
        std::ofstream file(folder / ("seed" + std::to_string(n++)), std::ios::binary);
        file.write(reinterpret_cast<const char*>(s.all().data()), static_cast<std::streamsize>(s.all().size()));
        if (!file.flush())
            return false;
    }
    return true;
}

} // namespace
} // namespace fuzz

int main(int argc, char** argv)
{
    if (argc != 2) {
        std::fputs("usage: coaccel_fuzz_seeds FOLDER\n", stderr);
        return 2;
    }
    const std::filesystem::path folder = argv[1];
    const bool saved = fuzz::save(folder / "worker_requests", fuzz::request_seeds()) &&
                       fuzz::save(folder / "parent_replies", fuzz::reply_seeds()) &&
                       fuzz::save(folder / "ring", fuzz::ring_seeds()) &&
                       fuzz::save(folder / "plan_file", fuzz::plan_file_seeds()) &&
                       fuzz::save(folder / "http_requests", fuzz::http_seeds());
    return saved ? 0 : 1;
}
