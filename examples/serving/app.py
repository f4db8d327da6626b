"""A finished run as a web service; README.md beside this file says how to start it."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel

import sacm
from sacm.cli.runs import load_run


class Question(BaseModel):
    """Rows `[T][C]` in raw units, the oldest first; null where a value is missing."""

    rows: list[list[float | None]]


@asynccontextmanager
async def open_model(app: FastAPI) -> Any:
    """Open the run once, before the first request."""
    from pathlib import Path

    app.state.predictor = sacm.Predictor.load(load_run(Path(os.environ["SACM_RUN"])))
    yield


app = FastAPI(title="sacm", lifespan=open_model)


@app.get("/model")
def model(request: Request) -> dict[str, Any]:
    """What the model is and what it takes."""
    predictor = request.app.state.predictor
    shape = predictor.shape
    return {
        "task": predictor.settings.task,
        "backbone": predictor.settings.backbone,
        "channels": shape.columns,
        "rows": shape.input_len,
        "horizon": shape.horizon,
        "classes": list(shape.classes),
    }


@app.post("/predict")
def predict(question: Question, request: Request) -> dict[str, Any]:
    """Answer for rows: a forecast, a label, or a score and an alarm for each row."""
    predictor = request.app.state.predictor
    try:
        rows = np.array(question.rows, dtype=np.float64)  # null becomes NaN
        one_case = predictor.settings.task == "classification"  # [1, C, L]
        answer = predictor.predict(rows.T[None] if one_case else rows)
    except (sacm.SACMError, ValueError) as error:
        raise HTTPException(422, str(error)) from None
    if predictor.settings.task == "forecasting":
        return {"forecast": np.asarray(answer).tolist()}
    if predictor.settings.task == "classification":
        return {"class": np.asarray(answer).tolist()}
    return {"score": answer.score.tolist(), "alarm": answer.alarm.tolist()}
