"""Downloads that cannot be made: Streamlit would answer in words of its own, and quote what was read in its log."""

import asyncio

from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.proto.ForwardMsg_pb2 import BackendOperationResponse
from streamlit.runtime import app_session
from streamlit.runtime.backend_operation_handler import DeferredFileHandler

from core.errors import WinnowError
from pages.ui.frame import BUG, bug


class Downloads(DeferredFileHandler):
    """Has a file made that was asked for, and says why where that cannot be."""

    async def handle(self, request: BackendOperationRequest, session_id: str) -> BackendOperationResponse:
        """The file's address, or the sentence that stands below the button for some seconds."""
        answer = BackendOperationResponse(request_id=request.request_id)
        make = self._get_media_file_mgr().execute_deferred
        try:
            answer.deferred_file.url = await asyncio.to_thread(make, request.deferred_file.file_id)
        except Exception as error:  # noqa: BLE001  told below the button
            answer.error_msg = _why(error.__cause__ or error)
        return answer


def _why(error: BaseException) -> str:
    return str(error) if isinstance(error, WinnowError) else f"{BUG}. {bug(error)}"


def answer_in_our_words() -> None:
    """Put ours in the place of Streamlit's, for every window that is opened from now on."""
    app_session.DeferredFileHandler = Downloads  # type: ignore[attr-defined]
