#ifndef COACCEL_BENCH_CUDA_RAW_REQUESTS_HPP
#define COACCEL_BENCH_CUDA_RAW_REQUESTS_HPP

#include "raw.hpp"

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace coaccel::bench {

/// What a client of a server asks for: a vector is uploaded, multiplied by a square matrix, once or several times in
/// succession, and downloaded.
struct request_shape {
    std::size_t n;
    int products;

    std::size_t elements() const noexcept { return n * n; }
    /// All elements of the matrix have this value, so that every result is the mean of the input.
    float weight() const noexcept { return 1 / static_cast<float>(n); }
};

/// The input of every request.
std::vector<float> request_input(const request_shape& shape);

/// Throws if this is not the result of a request with that input.
void check_answer(const request_shape& shape, std::span<const float> answer);

/// A stream with its own cuBLAS handle.
class raw_lane {
public:
    explicit raw_lane(const raw_gpu& raw);
    raw_lane(const raw_lane&) = delete;
    raw_lane& operator=(const raw_lane&) = delete;
    ~raw_lane();

    CUstream stream() const noexcept { return stream_; }
    void synchronize() const { raw_.check(raw_.api().cuStreamSynchronize(stream_), "cuStreamSynchronize"); }

    /// y = a * x
    void multiply(std::size_t n, const raw_memory& a, const raw_memory& x, const raw_memory& y) const;
    /// The same for each column of x.
    void multiply(std::size_t n, std::size_t columns, const raw_memory& a, const raw_memory& x,
                  const raw_memory& y) const;

private:
    void check(cublasStatus_t s, const char* what) const;

    const raw_gpu& raw_;
    const cuda::cublas_api* api_;
    CUstream stream_ = nullptr;
    cublasHandle_t handle_ = nullptr;
    /// Given to the handle, so that a capture contains no allocation.
    raw_memory workspace_;
};

/// The memory of one request on its way, and its graph. Also the memory of the caller, which is not pinned: a graph has
/// fixed addresses, so a server copies between the caller's memory and pinned memory.
class raw_slot {
public:
    raw_slot(const raw_gpu& raw, const request_shape& shape, const raw_memory& matrix);
    raw_slot(const raw_slot&) = delete;
    raw_slot& operator=(const raw_slot&) = delete;
    ~raw_slot();

    /// Enqueues the request, from pinned memory to pinned memory.
    void enqueue(const raw_lane& lane) const;
    /// Records the request as a graph.
    void record(const raw_lane& lane);

    void launch_graph(const raw_lane& lane) const
    {
        raw_.check(raw_.api().cuGraphLaunch(graph_, lane.stream()), "cuGraphLaunch");
    }

    void copy_input() const noexcept;
    void copy_output() noexcept;

    void record_end(const raw_lane& lane) const
    {
        raw_.check(raw_.api().cuEventRecord(end_, lane.stream()), "cuEventRecord");
    }
    bool ended() const;

    std::span<const float> caller_output() const noexcept { return caller_output_; }
    std::span<const float> pinned_output() const noexcept { return pinned_output_.span(); }

private:
    const raw_gpu& raw_;
    const request_shape shape_;
    const raw_memory& matrix_;
    std::vector<float> caller_input_;
    std::vector<float> caller_output_;
    raw_pinned pinned_input_;
    raw_pinned pinned_output_;
    raw_memory x_;
    raw_memory y_;
    CUgraphExec graph_ = nullptr;
    CUevent end_ = nullptr;
};

/// A matrix of equal elements in device memory.
class raw_matrix {
public:
    raw_matrix(const raw_gpu& raw, const request_shape& shape);

    const raw_memory& memory() const noexcept { return memory_; }

private:
    raw_memory memory_;
};

/// A server in plain CUDA with one thread: a number of requests at a time, each on one of several streams, whose ends
/// are polled.
class raw_server {
public:
    raw_server(const raw_gpu& raw, const request_shape& shape, int streams, int requests);

    /// The seconds per request, with each request as the launch of a graph, and the copies between the caller's memory
    /// and pinned memory.
    double graph_time(int each);

    /// The same with each request enqueued command by command, from and to the caller's pinned memory.
    double stream_time(int each);

    /// The seconds of each graph and the wait for it, without the first `skip`, one at a time.
    void graph_round_trips(int skip, int count, std::vector<double>& times);

private:
    struct queue {
        explicit queue(const raw_gpu& raw) : lane(raw) {}

        raw_lane lane;
        std::deque<raw_slot> slots;
        /// The request that ends next, and how many are on the stream.
        std::size_t oldest = 0;
        std::size_t in_flight = 0;
        /// Requests that are still to be started.
        int left = 0;
    };

    template <class Start, class Finish>
    double serve(int each, Start start, Finish finish);

    const raw_gpu& raw_;
    const request_shape shape_;
    raw_matrix matrix_;
    std::deque<queue> queues_;
    int requests_;
};

/// A server in plain CUDA with threads that block: each has its own stream, cuBLAS handle and pinned memory, and serves
/// one request at a time.
class raw_threads {
public:
    raw_threads(const raw_gpu& raw, const request_shape& shape, int threads);

    /// The seconds per request.
    double time(int each);

private:
    struct server {
        server(const raw_gpu& raw, const request_shape& shape, const raw_memory& matrix)
            : lane(raw), slot(raw, shape, matrix)
        {}

        raw_lane lane;
        raw_slot slot;
    };

    const raw_gpu& raw_;
    const request_shape shape_;
    raw_matrix matrix_;
    std::deque<server> servers_;
};

} // namespace coaccel::bench

#endif
