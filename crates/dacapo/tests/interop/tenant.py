"""Carries the header "tenant" from each call to the workflows and activities that it leads to."""

from contextvars import ContextVar
from typing import Any, Optional

import temporalio.client
import temporalio.worker
from temporalio.converter import PayloadConverter

NAME = "tenant"
tenant: ContextVar[Optional[str]] = ContextVar(NAME, default=None)


def take(input: Any) -> None:
    header = input.headers.get(NAME)
    tenant.set(PayloadConverter.default.from_payload(header, str) if header else None)


def put(input: Any) -> Any:
    if tenant.get() is not None:
        input.headers = {**input.headers, NAME: PayloadConverter.default.to_payload(tenant.get())}
    return input


class OfClient(temporalio.client.Interceptor):
    def intercept_client(self, next):
        return _Client(next)


class OfWorker(temporalio.worker.Interceptor):
    def intercept_activity(self, next):
        return _Activity(next)

    def workflow_interceptor_class(self, input):
        return _Workflow


class _Client(temporalio.client.OutboundInterceptor):
    async def start_workflow(self, input):
        return await super().start_workflow(put(input))

    async def signal_workflow(self, input):
        return await super().signal_workflow(put(input))

    async def query_workflow(self, input):
        return await super().query_workflow(put(input))

    async def start_workflow_update(self, input):
        return await super().start_workflow_update(put(input))


class _Activity(temporalio.worker.ActivityInboundInterceptor):
    async def execute_activity(self, input):
        take(input)
        return await super().execute_activity(input)


class _Workflow(temporalio.worker.WorkflowInboundInterceptor):
    def init(self, outbound):
        super().init(_Calls(outbound))

    async def execute_workflow(self, input):
        take(input)
        return await super().execute_workflow(input)

    async def handle_signal(self, input):
        take(input)
        return await super().handle_signal(input)

    async def handle_update_handler(self, input):
        take(input)
        return await super().handle_update_handler(input)


class _Calls(temporalio.worker.WorkflowOutboundInterceptor):
    def start_activity(self, input):
        return super().start_activity(put(input))
