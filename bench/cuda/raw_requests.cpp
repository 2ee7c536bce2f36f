#include "raw_requests.hpp"

#include "clock.hpp"

#include <cmath>
#include <cstring>
#include <exception>
#include <numeric>
#include <thread>

namespace coaccel::bench {
namespace {

constexpr std::size_t workspace_bytes = std::size_t(4) << 20;

} // namespace

std::vector<float> request_input(const request_shape& shape)
{
    std::vector<float> made(shape.n);
    for (std::size_t i = 0; i < made.size(); ++i)
        made[i] = static_cast<float>(i % 7);
    return made;
}

void check_answer(const request_shape& shape, std::span<const float> answer)
{
    const auto input = request_input(shape);
    const float mean = std::accumulate(input.begin(), input.end(), 0.0f) / static_cast<float>(input.size());
    if (answer.size() != shape.n)
        throw failure("the answer to a request has a wrong size");
    for (const float x : answer)
        if (!(std::abs(x - mean) < 1e-2f))
            throw failure("the answer to a request is wrong");
}

raw_lane::raw_lane(const raw_gpu& raw)
    : raw_(raw), api_(value_of(cuda::cublas_api::load(), "cuBLAS")), workspace_(raw, workspace_bytes)
{
    const auto inside = raw_.enter();
    raw_.check(raw_.api().cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0),
               "cuStreamCreateWithPriority");
    check(api_->cublasCreate(&handle_), "cublasCreate");
    check(api_->cublasSetStream(handle_, stream_), "cublasSetStream");
    check(api_->cublasSetWorkspace(handle_, workspace_.pointer(), workspace_bytes), "cublasSetWorkspace");
}

raw_lane::~raw_lane()
{
    CUcontext popped = nullptr;
    if (raw_.api().cuCtxPushCurrent(raw_.context()) != CUDA_SUCCESS)
        return;
    (void)raw_.api().cuStreamSynchronize(stream_);
    (void)api_->cublasDestroy(handle_);
    (void)raw_.api().cuStreamDestroy(stream_);
    (void)raw_.api().cuCtxPopCurrent(&popped);
}

void raw_lane::check(cublasStatus_t s, const char* what) const
{
    if (s != CUBLAS_STATUS_SUCCESS)
        throw failure(std::string(what) + ": " + api_->cublasGetStatusString(s));
}

void raw_lane::multiply(std::size_t n, const raw_memory& a, const raw_memory& x, const raw_memory& y) const
{
    const float one = 1;
    const float zero = 0;
    const auto size = static_cast<std::int64_t>(n);
    check(api_->cublasSgemv_64(handle_, CUBLAS_OP_N, size, size, &one, static_cast<const float*>(a.pointer()), size,
                               static_cast<const float*>(x.pointer()), 1, &zero, static_cast<float*>(y.pointer()), 1),
          "cublasSgemv");
}

void raw_lane::multiply(std::size_t n, std::size_t columns, const raw_memory& a, const raw_memory& x,
                        const raw_memory& y) const
{
    const float one = 1;
    const float zero = 0;
    const auto size = static_cast<std::int64_t>(n);
    check(api_->cublasGemmEx_64(handle_, CUBLAS_OP_N, CUBLAS_OP_N, size, static_cast<std::int64_t>(columns), size, &one,
                                a.pointer(), CUDA_R_32F, size, x.pointer(), CUDA_R_32F, size, &zero, y.pointer(),
                                CUDA_R_32F, size, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
}

raw_slot::raw_slot(const raw_gpu& raw, const request_shape& shape, const raw_memory& matrix)
    : raw_(raw), shape_(shape), matrix_(matrix), caller_input_(request_input(shape)), caller_output_(shape.n),
      pinned_input_(raw, shape.n), pinned_output_(raw, shape.n), x_(raw, shape.n * sizeof(float)),
      y_(raw, shape.n * sizeof(float))
{
    copy_input();
    const auto inside = raw_.enter();
    raw_.check(raw_.api().cuEventCreate(&end_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
}

raw_slot::~raw_slot()
{
    CUcontext popped = nullptr;
    if (raw_.api().cuCtxPushCurrent(raw_.context()) != CUDA_SUCCESS)
        return;
    if (graph_)
        (void)raw_.api().cuGraphExecDestroy(graph_);
    (void)raw_.api().cuEventDestroy(end_);
    (void)raw_.api().cuCtxPopCurrent(&popped);
}

void raw_slot::enqueue(const raw_lane& lane) const
{
    const std::size_t bytes = shape_.n * sizeof(float);
    raw_.check(raw_.api().cuMemcpyHtoDAsync(x_.address(), pinned_input_.span().data(), bytes, lane.stream()),
               "cuMemcpyHtoDAsync");
    const raw_memory* from = &x_;
    const raw_memory* to = &y_;
    for (int i = 0; i < shape_.products; ++i) {
        lane.multiply(shape_.n, matrix_, *from, *to);
        std::swap(from, to);
    }
    raw_.check(raw_.api().cuMemcpyDtoHAsync(pinned_output_.span().data(), from->address(), bytes, lane.stream()),
               "cuMemcpyDtoHAsync");
}

void raw_slot::record(const raw_lane& lane)
{
    const auto& api = raw_.api();
    // Loads the kernels, which is impossible in a capture.
    enqueue(lane);
    lane.synchronize();
    raw_.check(api.cuStreamBeginCapture(lane.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
    enqueue(lane);
    CUgraph made = nullptr;
    raw_.check(api.cuStreamEndCapture(lane.stream(), &made), "cuStreamEndCapture");
    const CUresult r = api.cuGraphInstantiateWithFlags(&graph_, made, 0);
    (void)api.cuGraphDestroy(made);
    raw_.check(r, "cuGraphInstantiateWithFlags");
    raw_.check(api.cuGraphUpload(graph_, lane.stream()), "cuGraphUpload");
}

void raw_slot::copy_input() const noexcept
{
    std::memcpy(pinned_input_.span().data(), caller_input_.data(), caller_input_.size() * sizeof(float));
}

void raw_slot::copy_output() noexcept
{
    std::memcpy(caller_output_.data(), pinned_output_.span().data(), caller_output_.size() * sizeof(float));
}

bool raw_slot::ended() const
{
    const CUresult r = raw_.api().cuEventQuery(end_);
    if (r == CUDA_ERROR_NOT_READY)
        return false;
    raw_.check(r, "cuEventQuery");
    return true;
}

raw_matrix::raw_matrix(const raw_gpu& raw, const request_shape& shape) : memory_(raw, shape.elements() * sizeof(float))
{
    const std::vector<float> values(shape.elements(), shape.weight());
    const auto inside = raw.enter();
    raw.check(raw.copy_in(memory_.address(), values.data(), values.size() * sizeof(float)), "cuMemcpyHtoD");
}

raw_server::raw_server(const raw_gpu& raw, const request_shape& shape, int streams, int requests)
    : raw_(raw), shape_(shape), matrix_(raw, shape), requests_(requests)
{
    for (int i = 0; i < streams; ++i)
        queues_.emplace_back(raw);
    for (int i = 0; i < requests; ++i)
        queues_[static_cast<std::size_t>(i % streams)].slots.emplace_back(raw, shape, matrix_.memory());
    const auto inside = raw.enter();
    for (queue& q : queues_) {
        for (raw_slot& s : q.slots)
            s.record(q.lane);
        q.lane.synchronize();
    }
}

template <class Start, class Finish>
double raw_server::serve(int each, Start start, Finish finish)
{
    const auto inside = raw_.enter();
    const auto start_next = [&](queue& q) {
        const raw_slot& s = q.slots[(q.oldest + q.in_flight) % q.slots.size()];
        start(s, q.lane);
        s.record_end(q.lane);
        ++q.in_flight;
        --q.left;
    };
    const auto began = clock::now();
    std::size_t busy = queues_.size();
    for (queue& q : queues_) {
        q.left = each * static_cast<int>(q.slots.size());
        q.oldest = 0;
        while (q.in_flight < q.slots.size() && q.left > 0)
            start_next(q);
    }
    while (busy > 0)
        for (queue& q : queues_) {
            if (q.in_flight == 0 || !q.slots[q.oldest].ended())
                continue;
            finish(q.slots[q.oldest]);
            q.oldest = (q.oldest + 1) % q.slots.size();
            --q.in_flight;
            if (q.left > 0)
                start_next(q);
            else if (q.in_flight == 0)
                --busy;
        }
    return seconds_since(began) / (static_cast<double>(requests_) * each);
}

double raw_server::graph_time(int each)
{
    const double time = serve(
        each,
        [](const raw_slot& s, const raw_lane& lane) {
            s.copy_input();
            s.launch_graph(lane);
        },
        [](raw_slot& s) { s.copy_output(); });
    for (const queue& q : queues_)
        for (const raw_slot& s : q.slots)
            check_answer(shape_, s.caller_output());
    return time;
}

double raw_server::stream_time(int each)
{
    const double time = serve(each, [](const raw_slot& s, const raw_lane& lane) { s.enqueue(lane); }, [](raw_slot&) {});
    for (const queue& q : queues_)
        for (const raw_slot& s : q.slots)
            check_answer(shape_, s.pinned_output());
    return time;
}

void raw_server::graph_round_trips(int skip, int count, std::vector<double>& times)
{
    const auto inside = raw_.enter();
    queue& q = queues_.front();
    raw_slot& s = q.slots.front();
    for (int i = 0; i < skip + count; ++i) {
        const auto began = clock::now();
        s.copy_input();
        s.launch_graph(q.lane);
        q.lane.synchronize();
        s.copy_output();
        const double took = seconds_since(began);
        if (i >= skip)
            times.push_back(took);
    }
    check_answer(shape_, s.caller_output());
}

raw_threads::raw_threads(const raw_gpu& raw, const request_shape& shape, int threads)
    : raw_(raw), shape_(shape), matrix_(raw, shape)
{
    for (int i = 0; i < threads; ++i)
        servers_.emplace_back(raw, shape, matrix_.memory());
}

double raw_threads::time(int each)
{
    std::vector<std::exception_ptr> wrong(servers_.size());
    const auto began = clock::now();
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            threads.emplace_back([this, each, &s = servers_[i], &failed = wrong[i]] {
                try {
                    const auto inside = raw_.enter();
                    for (int k = 0; k < each; ++k) {
                        s.slot.enqueue(s.lane);
                        s.lane.synchronize();
                    }
                } catch (...) {
                    failed = std::current_exception();
                }
            });
    }
    const double took = seconds_since(began);
    for (const auto& e : wrong)
        if (e)
            std::rethrow_exception(e);
    for (const server& s : servers_)
        check_answer(shape_, s.slot.pinned_output());
    return took / (static_cast<double>(servers_.size()) * each);
}

} // namespace coaccel::bench
