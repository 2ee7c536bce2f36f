#include <coaccel/actor/mailbox.hpp>
#include <coaccel/actor/supervisor.hpp>
#include <coaccel/actor/watch.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <new>
#include <optional>

namespace test_actor_outlive {

// Objects that outlive their execution context. AddressSanitizer detects accesses to destroyed parts of it.

namespace {

using namespace coaccel;

TEST_SUITE_BEGIN("actor outlives");

template <class Make>
void on_each_kind_of_strand(Make make)
{
    {
        asio::io_context io;
        make(io, asio::any_io_executor(asio::make_strand(io)));
    }
    {
        asio::io_context io;
        make(io, asio::any_io_executor(asio::make_strand(asio::any_io_executor(io.get_executor()))));
    }
}

TEST_CASE("a mailbox_ref made on a strand may outlive the execution context, and reports closed")
{
    std::optional<mailbox_ref<int>> ref;
    std::optional<mailbox<int>> box;
    on_each_kind_of_strand([&](asio::io_context& io, const asio::any_io_executor& ex) {
        box.emplace(mailbox<int>::create(ex, 2).value());
        ref = box->ref();
        CHECK_FALSE(ref->try_send(1));
        box->async_receive([](error_code, int) {});
        io.poll();
        box->async_receive([own = *ref](error_code, int) { CHECK(false); });
    });
    CHECK_FALSE(ref->is_open());
    CHECK(ref->try_send(1) == errc::closed);
    auto copy = *ref;
    box.reset();
    CHECK(copy.try_send(1) == errc::closed);
}

TEST_CASE("a watch made on a strand may outlive the execution context")
{
    std::optional<watch_source<int>> source;
    std::optional<watch<int>> subscriber;
    on_each_kind_of_strand([&](asio::io_context&, const asio::any_io_executor& ex) {
        source.emplace(ex, 1);
        subscriber = source->subscribe();
        subscriber->async_changed([](error_code, int) { CHECK(false); });
    });
    source->publish(2);
    CHECK(subscriber->get() == 2);
    source.reset();
    CHECK_FALSE(subscriber->is_open());
}

TEST_CASE("a supervisor made on a strand may outlive the execution context")
{
    std::shared_ptr<supervisor> top;
    on_each_kind_of_strand([&](asio::io_context& io, const asio::any_io_executor& ex) {
        top = supervisor::create(ex, {}).value();
        top->async_run([](error_code) {});
        io.poll_one();
    });
    top.reset();
}

/// An allocator that can allocate one block.
template <class T>
struct one_block {
    using value_type = T;

    explicit one_block(int& l) noexcept : left(&l) {}
    template <class U>
    one_block(const one_block<U>& other) noexcept : left(other.left)
    {}

    T* allocate(std::size_t n)
    {
        if (*left == 0)
            throw std::bad_alloc();
        --*left;
        return std::allocator<T>().allocate(n);
    }

    void deallocate(T* p, std::size_t n) noexcept { std::allocator<T>().deallocate(p, n); }

    friend bool operator==(const one_block& a, const one_block& b) noexcept { return a.left == b.left; }

    int* left;
};

TEST_CASE("destroying a mailbox completes waiting operations even if their allocators are exhausted")
{
    asio::io_context io;
    auto strand = asio::make_strand(io);
    std::optional<mailbox<int>> box(mailbox<int>::create(io.get_executor(), 1).value());
    int left[] = {1, 1, 1};
    int closed = 0;
    const auto note = [&](error_code ec, auto...) { closed += ec == errc::closed; };
    CHECK_FALSE(box->try_send(1));
    box->async_send(2, asio::bind_allocator(one_block<char>(left[0]), note));
    box->async_send(3, asio::bind_executor(strand, asio::bind_allocator(one_block<char>(left[1]), note)));
    box.reset();
    io.run();
    CHECK(closed == 2);
    box.emplace(mailbox<int>::create(io.get_executor(), 1).value());
    box->async_receive(asio::bind_allocator(one_block<char>(left[2]), note));
    CHECK_THROWS_AS(box->async_send(1, asio::bind_allocator(one_block<char>(left[2]), note)), std::bad_alloc);
    box.reset();
    io.restart();
    io.run();
    CHECK(closed == 3);
}

TEST_SUITE_END();

} // namespace

} // namespace test_actor_outlive
