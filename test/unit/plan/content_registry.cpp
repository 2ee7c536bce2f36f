#include "plan/content_registry.hpp"

#include "plan/content_hash.hpp"
#include "support/example_plans.hpp"
#include "support/plan_files.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace test_plan_content_registry {

namespace {

using namespace coaccel;
using detail::identified_contents;
using detail::identify_content;
using detail::plan_content;

/// `id`: the hash that it claims to have.
plan_content content_of(const std::string& text, content_id id)
{
    const auto owner = std::make_shared<std::string>(text);
    return {.data = {owner, reinterpret_cast<const std::byte*>(owner->data())},
            .bytes = text.size(),
            .id = id,
            .identity = {}};
}

plan_content content_of(const std::string& text)
{
    return content_of(text, detail::hash_content(text.data(), text.size()));
}

const plan_content& constant_of(const plan_description& d)
{
    return detail::plan_access::data(d)->constant_contents.at(0);
}

} // namespace

TEST_SUITE_BEGIN("content_registry");

TEST_CASE("equal contents have one identity, and each keeps its own memory")
{
    const std::size_t before = identified_contents();
    plan_content a = content_of("weights");
    const plan_content b = content_of("weights");
    const std::weak_ptr<const std::byte> memory = a.data;
    plan_content first = identify_content(std::exchange(a, {}));
    const plan_content second = identify_content(b);
    CHECK(first.identity);
    CHECK(second.identity == first.identity);
    CHECK(second.data == b.data);
    CHECK(second.bytes == 7);
    CHECK(second.id == b.id);
    CHECK(identify_content(second).identity == first.identity);
    CHECK(identified_contents() == before + 2);
    // The first one is gone; the second keeps the identity, but not the memory.
    first = {};
    CHECK(memory.expired());
    CHECK(identified_contents() == before + 1);
    CHECK(identify_content(content_of("weights")).identity == second.identity);
}

TEST_CASE("a content whose file was shortened is equal to no other, and is not read")
{
    const test::temporary_folder folder;
    const std::string path = folder / "plan";
    const auto make = [](const char* name) {
        plan_builder b(name);
        const auto w = b.constant<float>(std::vector<float>(4096, 3.5f));
        b.add(memory::copy<float>{w.first(1), b.output<float>(1)});
        return b.finish().value();
    };
    REQUIRE(make("saved").save(path));
    const auto mapped = plan_description::load(path).value();
    CHECK(constant_of(make("whole")).identity == constant_of(mapped).identity);
    CHECK(detail::check_content(constant_of(mapped), 0, 4 * 4096) == error_code());

    std::filesystem::resize_file(path, 4096);
    CHECK(constant_of(make("shortened")).identity != constant_of(mapped).identity);
    const auto why = detail::check_content(constant_of(mapped), 0, 4);
    CHECK(why == errc::file_failed);
    CHECK(why.message().find(path) != std::string::npos);
}

TEST_CASE("a content whose users are gone is not found")
{
    const std::size_t before = identified_contents();
    std::weak_ptr<const void> identity = identify_content(content_of("weights")).identity;
    CHECK(identity.expired());
    CHECK(identified_contents() == before);
}

TEST_CASE("contents with the same hash and other bytes, or another length, differ")
{
    const content_id id{1, 2};
    const auto a = identify_content(content_of("weights", id));
    const auto forged = identify_content(content_of("Weights", id));
    const auto longer = identify_content(content_of("weights!", id));
    CHECK(forged.identity != a.identity);
    CHECK(longer.identity != a.identity);
    CHECK(longer.identity != forged.identity);
    CHECK(identify_content(content_of("weights", id)).identity == a.identity);
    CHECK(identify_content(content_of("Weights", id)).identity == forged.identity);
}

TEST_CASE("a content is compared with few others, however many claim its hash")
{
    const content_id id{3, 4};
    std::vector<plan_content> all;
    for (char c = 'a'; c <= 'z'; ++c)
        all.push_back(identify_content(content_of(std::string(1, c), id)));
    for (const auto& x : all)
        CHECK(std::ranges::count(all, x.identity, &plan_content::identity) == 1);
    // Not found, so that equal constants need memory twice; nothing else happens.
    const auto first = identify_content(content_of("a", id));
    const auto last = identify_content(content_of("z", id));
    CHECK(first.identity == all.front().identity);
    CHECK(last.identity != all.back().identity);
}

TEST_CASE("threads that identify equal contents at the same time get one identity")
{
    for (int round = 0; round < 50; ++round) {
        std::vector<plan_content> made(4);
        {
            std::vector<std::jthread> threads;
            for (plan_content& m : made)
                threads.emplace_back([&m] { m = identify_content(content_of("weights")); });
        }
        for (const plan_content& m : made)
            CHECK(m.identity == made.front().identity);
    }
}

TEST_CASE("plans that were built or read from files share their constants")
{
    const auto built = test::axpy_plan();
    const auto again = test::axpy_plan();
    const auto file = test::file_of(built);
    const auto from_file = test::read_file(file).value();
    const auto unchecked = test::read_file(file, content_check::none).value();
    CHECK(constant_of(again).identity == constant_of(built).identity);
    CHECK(constant_of(from_file).identity == constant_of(built).identity);
    CHECK(constant_of(unchecked).identity == constant_of(built).identity);
    CHECK(constant_of(test::axpy_plan(9)).identity != constant_of(built).identity);
}

TEST_SUITE_END();

} // namespace test_plan_content_registry
